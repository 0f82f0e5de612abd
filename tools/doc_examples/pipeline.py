"""An input pipeline that waits for its storage, and stalls once."""
import time

for i in range(400):
    time.sleep(0.15 if i == 200 else 0.0025)
    print(64)
