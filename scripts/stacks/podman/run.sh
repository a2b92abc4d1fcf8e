#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Podman, by root, with the container in a slice of harpe-gov: this needs a Harpe that runs as root, or
# a rule of the service manager for this one script. There is no uid of the pool and no report, and
# harpe-gov audit names the container (HG-RUN-003): the limits are Podman's and those of harpe.slice, and
# the firewall and the address filter are those of harpe-drop.slice.
# Rootless Podman cannot run inside of a guest: newuidmap is set-user-ID, which no_new_privs takes away,
# and its runtime sets a filter of system calls, which guests must not.
# --timeout: when Harpe kills this script the container stays behind. Run in the VM tests.
image=docker.io/library/python:3.12-slim
directory=$(dirname "$1")
exec podman --cgroup-manager systemd run --rm --cgroup-parent harpe-drop.slice \
	--network none --memory 512m --memory-swap 512m --cpus 1 --pids-limit 64 --timeout 600 \
	--read-only --user 65534:65534 --cap-drop all --security-opt no-new-privileges \
	--volume "$directory:$directory" --workdir "$directory" \
	--env HARPE_AUDIT_LOG --env HARPE_BROKER_SOCKET \
	"$image" python3 "$@"
