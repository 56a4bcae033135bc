#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# alone.sh COMMAND... - run a test in a network namespace of its own, where that
# is permitted (as root): boards, interfaces and their names are then its own,
# whatever else this user has running. Where it is not, another job of the same
# user on the same board may take an interface a test wants.

# SIOCSIFFLAGS, IFF_UP: without a loopback interface this host has no name
# shellcheck disable=SC2089
up='import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh22x", b"lo", 1))'

if unshare --net python3 -c "$up" 2>/dev/null; then
	UNM_ALONE=1		# a number nobody of ours holds is free
	export UNM_ALONE
	# shellcheck disable=SC2016
	exec unshare --net sh -c 'python3 -c "$1" && shift && exec "$@"' \
		"$0" "$up" "$@"
fi
exec "$@"
