# SPDX-License-Identifier: GPL-2.0-or-later
# Calculates, and stays until it is killed.
import time

print(sum(n * n for n in range(1000)), flush=True)
time.sleep(600)
