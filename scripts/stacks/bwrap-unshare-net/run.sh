#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bubblewrap inside of a guest, with a network namespace of its own. It makes a user
# namespace, which the profile must allow:
#	[profile nested]
#	user-namespaces = yes
# Give it to Harpe's user alone, with profiles = in [access]; harpe-gov.conf(5) says what it opens.
# There a pin would not hold, so there is none: what is in the directory afterwards is the program's to have
# replaced, the log included.
# Up to bubblewrap 0.11: later ones need openat2(2), which guests have not; see ../setpriv-landlock.
# Run in the VM tests.
directory=$(dirname "$1")
exec harpe-gov run --memory 512M --cpu 100% --pids 64 --time 10min --with-parent \
	--rw "$directory" --net nested \
	-- bwrap --ro-bind /usr /usr --ro-bind /lib /lib --ro-bind /lib64 /lib64 --ro-bind /etc /etc \
	--proc /proc --dev /dev --tmpfs /tmp --bind "$directory" "$directory" \
	--die-with-parent --unshare-net \
	-- python3 "$@" </dev/null
