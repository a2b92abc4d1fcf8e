#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# gVisor, as a runtime of Docker's (runsc install, then restart Docker); all that docker/run.sh says holds
# here. runsc cannot run inside of a guest: it sets filters of system calls, which guests must not.
# Options as of gvisor.dev, "Docker Quick Start". Debian 12 has no runsc. Not run here.
image=python:3.12-slim
directory=$(dirname "$1")
exec docker run --rm --runtime runsc --cgroup-parent harpe-drop.slice \
	--network none --memory 512m --memory-swap 512m --cpus 1 --pids-limit 64 \
	--read-only --user 65534:65534 --cap-drop all --security-opt no-new-privileges \
	--volume "$directory:$directory" --workdir "$directory" \
	--env HARPE_AUDIT_LOG --env HARPE_BROKER_SOCKET \
	"$image" timeout -s KILL 600 python3 "$@"
