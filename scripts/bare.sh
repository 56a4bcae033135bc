# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-bare: the commands of the README in a fresh clone, on a
# minimal Debian 12 that debootstrap makes. They run in a chroot which contains
# nothing of this machine's files, so a missing line in scripts/packages.txt
# shows. A process in a chroot may not make user namespaces, so tests meet a
# kernel that refuses things, too.
#
# Every mount is made in a mount namespace whose processes are all in one pid
# namespace: whatever ends this script, SIGKILL included, ends both.

BARE_ROOT=$BUILD/bare			# removed at the end
BARE_SUITE=bookworm
BARE_INCLUDE=git,ca-certificates
BARE_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# The pristine tree
bare_tar()
{
	printf '%s/bare-%s.tar\n' "$CACHE" \
		"$(hash_of "-$BARE_SUITE $BARE_INCLUDE $(uname -m)")"
}

# bare_apart FUNCTION ARGS... : in namespaces that end with our parent process
bare_apart()
{
	exec setpriv --pdeathsig KILL unshare --mount --pid --fork \
		--kill-child --propagation private \
		"$BASH" "$TOP/scripts/step" "$@"
}

# Run debootstrap with the first of apt's mirrors that has the suite. (It
# leaves mounts of its own when killed: run this by bare_apart.)
bare_make()
{
	local _ uri tar=$1

	mount -t proc none /proc
	while read -r _ uri _; do
		rm -rf --one-file-system "$BARE_ROOT"
		if debootstrap --variant=minbase --include="$BARE_INCLUDE" \
				"$BARE_SUITE" "$BARE_ROOT" "$uri"; then
			mkdir -p "$CACHE"
			tar -C "$BARE_ROOT" --one-file-system -cf "$tar.tmp" .
			mv "$tar.tmp" "$tar"
			return 0
		fi
	done < <(mirrors deb "$BARE_SUITE" | sed -E 's/\[[^]]*\] //' | sort -u)
	die "no mirror of apt's lists gave a $BARE_SUITE"
}

# bare_fill TAR : a new tree, and in it a clone of the commit
bare_fill()
{
	rm -rf --one-file-system "$BARE_ROOT"
	mkdir -p "$BARE_ROOT"
	tar -C "$BARE_ROOT" -xf "$1"
	git clone -q --no-local "$TOP" "$BARE_ROOT/root/unimem"
	git -C "$BARE_ROOT/root/unimem" log -1 --format='commit %H'
}

bare_remove() { rm -rf --one-file-system "$BARE_ROOT"; }

# ---- Inside ----------------------------------------------------------------

# Mount the file systems of a started system; devices are the kernel's.
bare_mounts()
{
	local dev=$BARE_ROOT/dev d

	# unshare --mount wants a root that is a mount point
	mount --bind "$BARE_ROOT" "$BARE_ROOT"
	mount -t proc none "$BARE_ROOT/proc"
	mount -t sysfs -o ro none "$BARE_ROOT/sys"
	mount -t tmpfs -o mode=755 none "$dev"
	for d in null zero full random urandom tty; do
		: >"$dev/$d"
		mount --bind "/dev/$d" "$dev/$d"
	done
	mkdir "$dev/shm" "$dev/pts"
	mount -t tmpfs -o mode=1777 none "$dev/shm"
	mount -t devpts -o newinstance,ptmxmode=666 none "$dev/pts"
	ln -s pts/ptmx "$dev/ptmx"
	ln -s /proc/self/fd "$dev/fd"
	ln -s fd/0 "$dev/stdin"
	ln -s fd/1 "$dev/stdout"
	ln -s fd/2 "$dev/stderr"
}

# bare_in COMMAND... : in the clone, with the environment of a first login; of
# this machine only the names of its network, and the proxy if there is one
bare_in()
{
	local v from=()

	for v in http_proxy https_proxy no_proxy; do
		[ -z "${!v:-}" ] || from+=("$v=${!v}")
	done
	cp -L /etc/hosts /etc/resolv.conf "$BARE_ROOT/etc/"
	# shellcheck disable=SC2016 # of the shell inside
	env -i "${from[@]}" PATH="$BARE_PATH" HOME=/root TERM=dumb \
		chroot "$BARE_ROOT" /bin/sh -c 'cd /root/unimem && exec "$@"' \
		sh "$@"
}

# bare_command COMMAND : the README's line of that command, with four hosts for
# cluster, which it may refuse only where this machine refuses them as well; run
# by bare_apart
bare_command()
{
	local line rc=0 why=

	line=$(sed -nE "s,^(\./quickstart $1)( +#.*)?\$,\1,p" \
		"$BARE_ROOT/root/unimem/README.md")
	[ -n "$line" ] || die "the README does not say ./quickstart $1"
	if [ "$1" = cluster ]; then
		line+=" 4"
		why=$(cluster_refusal)
	fi
	bare_mounts
	bare_in /bin/sh -c "$line" || rc=$?
	if [ -n "$why" ] && [ "$rc" -eq 77 ]; then
		say "SKIPPED: bare/cluster ($why)"
		say "0 passed, 0 failed, 1 skipped"
	elif [ "$rc" -ne 0 ]; then
		return "$rc"
	elif [ "$1" != check ]; then
		say "1 passed, 0 failed, 0 skipped"
	fi
}

# bare_cmocka : make check of what demo has built, before cmocka is installed;
# run by bare_apart
bare_cmocka()
{
	local out=$BARE_ROOT/root/make-check

	bare_mounts
	bare_in make -C build/obj -k check 2>&1 | tee "$out"
	grep -q 'cmocka.*libcmocka-dev' "$out" ||
		die "make check does not say that cmocka is missing"
}

# ---- The command -----------------------------------------------------------

bare_can()
{
	[ "$(id -u)" -eq 0 ] || die "check-bare makes a chroot: run it as root"
	unshare --mount --pid --fork true 2>/dev/null ||
		die "check-bare needs mount and pid namespaces"
	[ -z "$(git -C "$TOP" status --porcelain)" ] ||
		warn "what is not committed is not tested"
}

# check_bare [demo|cluster|check] : all, or one of them
check_bare()
{
	local tar cmd all="demo cluster check" wanted
	wanted=${1:-$all}

	[ "$wanted" = "$all" ] || [[ " $all " == *" $wanted "* ]] ||
		die "check-bare: no '$1', there are: ${all// /, }"
	packages_need bare
	bare_can
	tar=$(bare_tar)
	EXIT_HOOKS+=(bare_remove check_broken)
	[ -e "$tar" ] ||
		step bare-make "making a bare Debian 12" \
			"Is a Debian mirror reachable?" \
			bare_apart bare_make "$tar"
	step bare-fill "a bare Debian 12, and a clone of the commit in it" \
		"Is the disk full? rm $tar, to begin anew." bare_fill "$tar"
	for cmd in $wanted; do
		suite "bare-$cmd" "./quickstart $cmd on a bare Debian 12" \
			count_line bare_apart bare_command "$cmd"
		[ "$cmd" = demo ] || continue
		SKIPS_AS=bare suite bare-cmocka \
			"make check there, without cmocka" \
			count_automake bare_apart bare_cmocka
	done
	conclude
}
