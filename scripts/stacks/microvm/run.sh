#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A microVM of QEMU's as a guest, emulated: guests have no /dev/kvm. --memory is for QEMU and the
# machine together. The kernel and an initrd with a Python in it are yours; its init finds the program
# in /sys/firmware/qemu_fw_cfg/by_name/opt/harpe/out.py/raw and ends with a reboot. The output is
# the machine's console, the exit status QEMU's own; the audit log stays empty.
# Options as of QEMU's "microvm virtual platform". Not run here.
machine=/srv/harpe/machine # vmlinux and initrd
exec harpe-gov run --memory 1G --cpu 100% --pids 64 --time 10min --with-parent \
	--ro "$machine" \
	-- qemu-system-x86_64 -M microvm,x-option-roms=off,rtc=on -accel tcg -cpu max -m 512m \
	-nodefaults -no-user-config -nographic -no-reboot -serial stdio \
	-kernel "$machine/vmlinux" -initrd "$machine/initrd" \
	-append "console=ttyS0 quiet panic=-1 reboot=t" \
	-fw_cfg "name=opt/harpe/out.py,file=$1" </dev/null
