"""A model server that takes 5 ms per request and handles one at a time."""
import http.server
import json
import sys
import threading
import time

MODEL = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        instances = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
        with MODEL:
            time.sleep(0.005)
        answer = json.dumps({"predictions": [0.5] * len(instances)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
