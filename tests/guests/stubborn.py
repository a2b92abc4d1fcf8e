# Ignores every signal that can be ignored, stops its own group, and spins.
import os
import signal

for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        pass  # SIGKILL and SIGSTOP
if os.fork() == 0:
    os.kill(os.getppid(), signal.SIGSTOP)
while True:
    pass
