#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Docker, with the container in a slice of harpe-gov. Its daemon makes the container, as root: the limits
# are Docker's and those of harpe.slice, and of the network layers there are the slice's, nothing else: no
# uid of the pool, no filter of ours, no report. harpe-gov audit names the container (HG-RUN-003).
# Whoever may use the daemon's socket is as good as root.
# timeout: when Harpe kills this script the container stays behind. Run in the VM tests.
image=python:3.12-slim
directory=$(dirname "$1")
exec docker run --rm --cgroup-parent harpe-drop.slice \
	--network none --memory 512m --memory-swap 512m --cpus 1 --pids-limit 64 \
	--read-only --user 65534:65534 --cap-drop all --security-opt no-new-privileges \
	--volume "$directory:$directory" --workdir "$directory" \
	--env HARPE_AUDIT_LOG --env HARPE_BROKER_SOCKET \
	"$image" timeout -s KILL 600 python3 "$@"
