#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# setpriv with Landlock (util-linux 2.40, Debian 13) inside of a guest: Landlock on top of the view.
# The VM tests run it where setpriv can do that.
directory=$(dirname "$1")
run=execute,read-file,read-dir
change=$run,write-file,remove-dir,remove-file,make-dir,make-reg,make-sock,make-fifo,make-sym
exec harpe-gov run --memory 512M --cpu 100% --pids 64 --time 10min --with-parent \
	--rw "$directory" --pin "$(basename "$1"):ro" --pin audit.jsonl \
	-- setpriv --landlock-access fs \
	--landlock-rule "path-beneath:$run:/usr" \
	--landlock-rule path-beneath:read-file,read-dir:/etc \
	--landlock-rule path-beneath:read-file,read-dir:/proc \
	--landlock-rule path-beneath:read-file,read-dir,write-file:/dev \
	--landlock-rule "path-beneath:$change:/tmp" \
	--landlock-rule "path-beneath:$change:$directory" \
	python3 "$@" </dev/null
