# shellcheck shell=bash disable=SC2034  # its variables are for who sources it
# SPDX-License-Identifier: GPL-2.0
#
# What the programs of the test machine share: messages, the cache, the root.
# Sourced by vm/root, vm/chroot, vm/build and vm/run; does nothing by itself.

TREE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${SHUNT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/shunt}
VM=$TREE/vm

say() { echo "vm: $*" >&2; }
die() { echo "${0##*/}: $*" >&2; exit 125; }
usage_error() { echo "${0##*/}: $* (see --help)" >&2; exit 2; }

# The head comment of the calling program is its help.
show_help() { awk 'NR > 3 && !/^#/ { exit } NR > 3 && !/shellcheck/ { sub(/^# ?/, ""); print }' "$0"; exit 0; }

# need COMMAND:PACKAGE...: all of them, or one line that says what to install.
need() {
	local pair missing=
	for pair; do
		PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null ||
			missing+=" ${pair#*:}"
	done
	[ -z "$missing" ] || die "missing programs; run: apt-get install$missing"
}

# What goes before a command to give it a mount namespace of its own and root's
# rights over it. A user becomes root of a user namespace.
ENTER=(unshare --mount --propagation private --)
[ "$(id -u)" = 0 ] || ENTER=(unshare --map-root-user "${ENTER[@]:1}")

may_enter() {
	"${ENTER[@]}" true 2>/dev/null || die "no user namespaces for users on this host: run as root," \
		"or allow them (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
}

# root_key: changes whenever the root has to be built anew.
root_key() { cat "$VM/root" "$VM/initrd" | sha256sum | cut -c1-12; }

# root_dir: the root's folder in the cache, built if it is not there yet.
root_dir() {
	local dir
	may_enter
	dir=$CACHE/root-$(root_key)
	touch -c "$dir/complete"
	[ -e "$dir/complete" ] || "$VM/root" >/dev/null || exit
	echo "$dir"
}

# use_go: a Go new enough on the PATH; the root has one for hosts without.
use_go() {
	local minor
	minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p' || true)
	[ "${minor:-0}" -ge 24 ] || PATH=$(root_dir)/fs/usr/lib/go/bin:$PATH
	# The tree may lie there without git, or belong to somebody else.
	export PATH GOFLAGS="-buildvcs=false ${GOFLAGS:-}"
}

# seen PATH: a path of the cache as the root sees it.
seen() { echo "/cache${1#"$CACHE"}"; }
