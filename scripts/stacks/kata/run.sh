#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Kata Containers, as a runtime of Docker's (23 or newer, with containerd-shim-kata-v2 in its PATH); all that
# docker/run.sh says holds here. With sandbox_cgroup_only=true in its configuration.toml the virtual
# machine is in the slice as well, and must fit into the limits. Debian has no package. Not run here.
image=python:3.12-slim
directory=$(dirname "$1")
exec docker run --rm --runtime io.containerd.kata.v2 --cgroup-parent harpe-drop.slice \
	--network none --memory 512m --memory-swap 512m --cpus 1 --pids-limit 64 \
	--read-only --user 65534:65534 --cap-drop all --security-opt no-new-privileges \
	--volume "$directory:$directory" --workdir "$directory" \
	--env HARPE_AUDIT_LOG --env HARPE_BROKER_SOCKET \
	"$image" timeout -s KILL 600 python3 "$@"
