"""Azurite, Microsoft's emulator of Azure Blob Storage, with a copy of a folder in the container `profiles`, below the
folder's own name.

Starts the program that is given first, prints its address, and ends with its standard input. Only the standard library is
needed: requests are signed here.
"""

import base64
import datetime
import hashlib
import hmac
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

# The public account and key of every emulator.
ACCOUNT = "devstoreaccount1"
KEY = base64.b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")


def put(address, path, body, query="", **headers):
    """Sends one signed request; `headers` are those of the service, without `x-ms-`."""
    now = datetime.datetime.now(datetime.timezone.utc)
    named = {"x-ms-date": now.strftime("%a, %d %b %Y %H:%M:%S GMT"), "x-ms-version": "2023-11-03"}
    named.update(("x-ms-" + name.replace("_", "-"), value) for name, value in headers.items())
    path = "/{}/{}".format(ACCOUNT, urllib.parse.quote(path))
    signed = "".join("{}:{}\n".format(name, named[name]) for name in sorted(named))
    resource = "/" + ACCOUNT + path + "".join("\n" + pair.replace("=", ":") for pair in filter(None, query.split("&")))
    length = str(len(body)) if body else ""
    text = "PUT\n\n\n{}\n\napplication/octet-stream\n\n\n\n\n\n\n{}{}".format(length, signed, resource)
    signature = base64.b64encode(hmac.new(KEY, text.encode(), hashlib.sha256).digest()).decode()
    named["Authorization"] = "SharedKey {}:{}".format(ACCOUNT, signature)
    named["Content-Type"] = "application/octet-stream"
    url = address + path + ("?" + query if query else "")
    urllib.request.urlopen(urllib.request.Request(url, data=body, headers=named, method="PUT")).read()


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as place:
        options = ["--blobHost", "127.0.0.1", "--blobPort", "0", "--location", place, "--skipApiVersionCheck"]
        server = subprocess.Popen([program, *options], stdout=subprocess.PIPE, stderr=sys.stderr, text=True)
        try:
            address = None
            while address is None:
                line = server.stdout.readline()
                if not line:
                    sys.exit("the emulator ended with {}".format(server.wait()))
                found = re.search(r"successfully listens on (http\S+)", line)
                address = found and found.group(1)
            put(address, "profiles", b"", "restype=container")
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            keys = {path.relative_to(folder.parent).as_posix(): path for path in files}
            # One more, below a folder without a name.
            keys["twice//" + next(iter(keys)).partition("/")[2]] = files[0]
            for key, path in keys.items():
                put(address, "profiles/" + key, path.read_bytes(), blob_type="BlockBlob")
            print(address, flush=True)
            sys.stdin.read()
        finally:
            os.kill(server.pid, signal.SIGTERM)
            server.wait()


if __name__ == "__main__":
    main()
