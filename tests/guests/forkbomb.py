# Forks until it is refused.
import os
import time

count = 0
try:
    while count < 5000:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        count += 1
except OSError as error:
    print("refused after", count, error.strerror)
