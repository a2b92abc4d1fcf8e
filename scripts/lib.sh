# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What the scripts share.  Source it; it defines functions and two variables and runs nothing.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # for those who source this
BUILD_PACKAGES=(gcc libc6-dev meson ninja-build pkg-config libnftnl-dev libmnl-dev libsystemd-dev
	libseccomp-dev libjansson-dev libinih-dev libcmocka-dev scdoc linux-libc-dev systemd)

say() { printf 'harpe-gov: %s\n' "$*" >&2; }

die() {
	say "$*"
	exit 1
}

# need PACKAGE...: installs those that are missing.
need() {
	local missing=() package
	for package; do
		dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null |
			grep -q '^install ok installed$' || missing+=("$package")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$(id -u)" = 0 ] || die "these packages are missing and only root can install them: ${missing[*]}"
	say "installing ${missing[*]}"
	install_packages "${missing[@]}" || die "apt-get could not install ${missing[*]}"
}

# Two scripts at once must queue up here: apt-get waits for dpkg's lock, not for the one of its lists.
install_packages() (
	exec 9>/run/lock/harpe-gov-apt.lock && flock 9 || return
	log=$(mktemp) || return
	trap 'rm -f "$log"' EXIT
	export DEBIAN_FRONTEND=noninteractive
	{
		apt-get -q update &&
			apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@"
	} </dev/null >"$log" 2>&1 9>&- || {
		tail -n 20 "$log" >&2
		return 1
	}
)

# quietly LOG COMMAND...: the output (its end) is shown only when the command fails.
quietly() {
	local log=$1
	shift
	"$@" </dev/null >"$log" 2>&1 || {
		tail -n 100 "$log" >&2
		return 1
	}
}

# build_project DIR [MESON-OPTION]...: configures DIR, anew when the options or $CC changed, and compiles.
build_project() (
	dir=$1
	shift
	mkdir -p "$(dirname "$dir")"
	exec 9>"$dir.lock" && flock 9
	wanted="CC=${CC:-} $*"
	if [ ! -e "$dir/build.ninja" ] || [ "$(cat "$dir/.configured" 2>/dev/null)" != "$wanted" ]; then
		say "configuring and building ${dir#"$ROOT/"}"
		rm -rf "$dir"
		quietly "$dir.log" meson setup "$dir" "$ROOT" "$@" 9>&- || return
		printf '%s\n' "$wanted" >"$dir/.configured"
	fi
	quietly "$dir.log" ninja -C "$dir" 9>&-
)
