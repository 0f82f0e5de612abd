"""An S3 server (moto) with a copy of a folder in the bucket `profiles`, below the folder's own name.

Prints its address and a signed URL of the first file, logs requests on standard error, and ends with its standard input.
"""

import contextlib
import logging
import os
import pathlib
import sys

import boto3
from moto.server import ThreadedMotoServer

os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_DEFAULT_REGION="us-east-1")
folder = pathlib.Path(sys.argv[1])
quiet = logging.getLogger("werkzeug")
quiet.setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
with contextlib.redirect_stdout(sys.stderr):
    server.start()
address = "http://%s:%s" % server.get_host_and_port()
s3 = boto3.client("s3", endpoint_url=address)
s3.create_bucket(Bucket="profiles")
keys = {str(path.relative_to(folder.parent)): path for path in sorted(folder.rglob("*")) if path.is_file()}
# One more, below a folder without a name.
keys["twice//" + next(iter(keys)).partition("/")[2]] = next(iter(keys.values()))
for key, path in keys.items():
    # Requests in Google's manner come without a signature.
    s3.put_object(Bucket="profiles", Key=key, Body=path.read_bytes(), ACL="public-read")
signed = s3.generate_presigned_url("get_object", Params={"Bucket": "profiles", "Key": next(iter(keys))})
quiet.setLevel(logging.INFO)
quiet.addHandler(logging.StreamHandler(sys.stderr))
print(address, signed, flush=True)
sys.stdin.read()
