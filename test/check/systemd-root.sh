#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# systemd-root.sh ROOT SYSTEMD STAGE PREFIX BUILD - become systemd on a machine
# that is made of namespaces. Run by check-systemd.sh as the first process of
# new ones. ROOT is an empty folder: there a root of this system's programs,
# read-only, with an /etc, /var and /home of its own; what STAGE has is below
# PREFIX, and BUILD is where it is. Nothing of it outlives the namespaces.
set -e
root=$1 systemd=$2 stage=$3 prefix=$4 build=$5

# bind FROM TO : TO of the new root
bind()
{
	if [ -d "$1" ]; then
		mkdir -p "$root$2"
	else
		: >"$root$2"
	fi
	mount --bind "$1" "$root$2"
}

read_only() { mount -o remount,bind,ro "$root$1"; }

# fresh TYPE TO OPTIONS
fresh()
{
	mkdir -p "$root$2"
	mount -t "$1" -o "$3" none "$root$2"
}

programs()
{
	bind /usr /usr
	for d in bin sbin lib lib32 lib64; do
		if [ -L /$d ]; then
			cp -P /$d "$root/"
		elif [ -d /$d ]; then
			bind /$d /$d
		fi
	done
	bind "$build" "$build"
	read_only "$build"
	bind "$stage$prefix" "$prefix"
	read_only /usr
}

devices()
{
	fresh tmpfs /dev mode=755
	for d in null zero full random urandom; do
		bind /dev/$d /dev/$d
	done
	fresh tmpfs /dev/shm mode=1777
	fresh devpts /dev/pts newinstance,ptmxmode=666
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
}

# Settings of the kernel are the whole machine's: nobody changes them.
kernel()
{
	fresh proc /proc rw
	bind "$root/proc/sys" /proc/sys
	read_only /proc/sys
	fresh sysfs /sys ro
	mount -t cgroup2 none "$root/sys/fs/cgroup"
}

# Two users; what is installed is found by the loader.
settings()
{
	mkdir -p "$root/etc" "$root/var/log"
	ln -s /run "$root/var/run"
	echo 00000000000000000000000000000001 >"$root/etc/machine-id"
	echo root:x:0:0::/root:/bin/sh >"$root/etc/passwd"
	echo user:x:65534:65534::/home/user:/bin/sh >>"$root/etc/passwd"
	printf 'root:x:0:\nuser:x:65534:\n' >"$root/etc/group"
	cp -R /etc/ld.so.conf* "$root/etc/"
	chroot "$root" /sbin/ldconfig
}

# unit NAME : its lines on standard input
unit() { cat >"$root$units/$1"; }

# These and no other: what this system's units do at a start, to /tmp for one,
# they shall not do here. (user@.service, for the manager of the second user,
# wants PAM and a login.)
units=/etc/systemd/system
user_units=/home/user/.config/systemd/user
some_units()
{
	mkdir -p "$root$units" "$root$user_units"
	for u in sysinit.target basic.target shutdown.target \
		 systemd-journald.service systemd-journald.socket \
		 systemd-journald-dev-log.socket; do
		cp "${systemd%/*}/system/$u" "$root$units/"
	done
	for u in basic.target shutdown.target; do
		cp "${systemd%/*}/user/$u" "$root$user_units/"
	done
	chown -R 65534:65534 "$root/home/user"
	unit log.target <<-END
	[Unit]
	Wants=systemd-journald.service
	END
	unit manager.service <<-END
	[Service]
	Type=notify
	User=user
	RuntimeDirectory=user
	Environment=XDG_RUNTIME_DIR=/run/user SYSTEMD_UNIT_PATH=$user_units
	ExecStart=$systemd --user --unit=basic.target
	Delegate=yes
	KillMode=mixed
	END
}

mount -t tmpfs -o mode=755 none "$root"
fresh tmpfs /tmp mode=1777
fresh tmpfs /run mode=755
programs
devices
kernel
settings
some_units
mkdir "$root/old"
cd "$root"
pivot_root . old
umount -l old
cd /
rmdir old
exec env -i container=unimem PATH="$PATH" SYSTEMD_UNIT_PATH=$units setpriv \
	--bounding-set=-sys_time,-sys_module,-sys_rawio,-syslog,-sys_boot \
	"$systemd" --system --unit=log.target
