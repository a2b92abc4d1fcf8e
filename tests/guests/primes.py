# Counts the primes below a million with a sieve, and tries to tell somebody.
import socket

LIMIT = 1_000_000
sieve = bytearray([1]) * LIMIT
sieve[0:2] = b"\0\0"
for number in range(2, int(LIMIT**0.5) + 1):
    if sieve[number]:
        sieve[number * number::number] = bytes(len(range(number * number, LIMIT, number)))
print(f"there are {sum(sieve)} primes below {LIMIT}")

try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"primes", ("127.0.0.1", 9))
    print("and a packet left")
except OSError as error:
    print(f"telling the network: {error.strerror}")
