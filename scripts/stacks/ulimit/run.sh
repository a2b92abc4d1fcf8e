#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Limits of the shell, for each process by itself, below those of the whole tree.
# Run in the VM tests.
# shellcheck disable=SC3045 # dash and bash know both
ulimit -v 1048576 # KiB of address space
# shellcheck disable=SC3045
ulimit -t 30      # seconds of CPU time
directory=$(dirname "$1")
exec harpe-gov run --memory 512M --cpu 100% --pids 64 --time 10min --with-parent \
	--rw "$directory" --pin "$(basename "$1"):ro" --pin audit.jsonl \
	-- python3 "$@" </dev/null
