# Uses a processor for ever.
n = 0
while True:
    n += 1
