# SPDX-License-Identifier: GPL-2.0-or-later
# A normal calculation, the default of scripts/try: the primes below a limit, by Eratosthenes' sieve.
LIMIT = 200_000

candidate = bytearray([1]) * LIMIT
candidate[0:2] = b"\0\0"
for number in range(2, int(LIMIT ** 0.5) + 1):
    if candidate[number]:
        candidate[number * number::number] = bytes(len(range(number * number, LIMIT, number)))

primes = [number for number in range(LIMIT) if candidate[number]]
twins = sum(1 for low, high in zip(primes, primes[1:]) if high - low == 2)
print(f"{len(primes)} primes below {LIMIT}, the largest is {primes[-1]}, {twins} pairs of twins")
