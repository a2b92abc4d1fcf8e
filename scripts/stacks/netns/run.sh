#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A private network namespace: the built-in profile isolated is one, without any other tool and
# without a user namespace. Run in the VM tests.
directory=$(dirname "$1")
exec harpe-gov run --memory 512M --cpu 100% --pids 64 --time 10min --with-parent \
	--rw "$directory" --pin "$(basename "$1"):ro" --pin audit.jsonl --net isolated \
	-- python3 "$@" </dev/null
