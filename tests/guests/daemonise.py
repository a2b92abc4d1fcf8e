# Leaves a process behind that nobody of its session can reach; it holds the output open.
import os
import signal
import time

if os.fork() > 0:
    print("parent done", flush=True)
    os._exit(0)
os.setsid()
if os.fork() > 0:
    os._exit(0)
for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        pass
time.sleep(3600)
