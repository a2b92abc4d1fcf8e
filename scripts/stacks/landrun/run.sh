#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# landrun (https://github.com/Zouuup/landrun) inside of a guest: Landlock on top of the view.
# Options as of its README; Debian has it from forky on. Not run here.
# It passes no variable on by itself, and a file that is to be executed or mapped needs --rox.
# With Linux newer than 6.12, for approvals: --unix "$directory/broker.sock".
directory=$(dirname "$1")
exec harpe-gov run --memory 512M --cpu 100% --pids 64 --time 10min --with-parent \
	--rw "$directory" --pin "$(basename "$1"):ro" --pin audit.jsonl \
	-- landrun --best-effort \
	--rox /usr --rox /lib --rox /lib64 --ro /etc --ro /proc --rw /dev --rw /tmp --rw "$directory" \
	--env PATH --env HARPE_AUDIT_LOG --env HARPE_BROKER_SOCKET \
	python3 "$@" </dev/null
