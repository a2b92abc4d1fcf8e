# A normal calculation: the sum of the first thousand squares.
total = 0
for number in range(1000):
    total += number ** 2
print(total)
