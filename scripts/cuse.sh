# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-cuse: mailboxes as character devices, on a kernel. Debian's
# kernel runs in a virtual machine (qemu, by emulation of the processor), whose
# files are an initramfs of what is installed here: the daemons, Python, a shell
# and dd. There test/check/cuse_devices.py is the first program. Nothing is
# loaded into the kernel of this machine, and no package of a kernel installed.

CUSE_MADE=$BUILD/cuse
CUSE_LIMIT=${CUSE_LIMIT:-1800}	# seconds for the machine
CUSE_PYTHON=/usr/bin/python3	# Debian's

# Prints why there can be no such machine here; nothing if there can.
cuse_refusal()
{
	local p

	if [ "$(uname -m)" != x86_64 ]; then
		echo "the machine is an x86_64"
		return
	fi
	for p in qemu-system-x86_64 cpio apt-get dpkg-deb "$CUSE_PYTHON"; do
		if ! have "$p"; then
			echo "no $p: apt-get install" \
				"$(packages cuse | xargs)"
			return
		fi
	done
	[ -x "$PREFIX/bin/unimem-mailbox-cuse" ] ||
		echo "unimem-mailbox-cuse is not built: no libfuse3-dev"
}

# ---- Kernel --------------------------------------------------------------

# cuse_kernel DIR : vmlinuz, fuse.ko and cuse.ko of Debian's kernel
cuse_kernel()
{
	local dir=$1 name f

	apt_private deb bookworm
	name=$(apt-cache "${APT[@]:1}" depends linux-image-amd64 |
		sed -nE 's/^ *Depends: (linux-image-[0-9].*-amd64)$/\1/p')
	[ -n "$name" ] || return
	(cd "$APT_DIR/get" && "${APT[@]}" download "$name")
	dpkg-deb --fsys-tarfile "$APT_DIR"/get/*.deb |
		tar -C "$APT_DIR" -xf - --wildcards './boot/vmlinuz-*' \
			'./lib/modules/*/kernel/fs/fuse/*'
	mkdir "$APT_DIR/out"
	for f in "$APT_DIR"/boot/vmlinuz-* \
		"$APT_DIR"/lib/modules/*/kernel/fs/fuse/[fc]use.ko; do
		mv "$f" "$APT_DIR/out/$(basename "${f/vmlinuz-*/vmlinuz}")"
	done
	echo "$name" >"$APT_DIR/out/name"
	mv -T "$APT_DIR/out" "$dir"
}

cuse_need_kernel()
{
	CUSE_KERNEL=$CACHE/cuse-kernel-amd64
	[ ! -d "$CUSE_KERNEL" ] || return 0
	step cuse-kernel "fetching Debian's kernel" \
		"The package linux-image-amd64 has to be in apt's lists." \
		cuse_kernel "$CUSE_KERNEL"
}

# ---- Machine -------------------------------------------------------------

# cuse_libraries FILE... : of programs and libraries; what they load
cuse_libraries()
{
	local f

	for f; do
		case $f in
		*.py|*.pyc)	;;
		*)		ldd "$f" | grep -oE '/[^ )]+' || : ;;
		esac
	done
}

# cuse_copy ROOT FILE... : and the libraries that each one loads, to the same
# paths
cuse_copy()
{
	local root=$1 f
	shift

	{ printf '%s\n' "$@"; cuse_libraries "$@"; } | sort -u |
	while read -r f; do
		mkdir -p "$root${f%/*}"
		cp -L "$f" "$root$f"
	done
}

# cuse_modules : the files that Python loads for cuse_devices.py, and all
# encodings
cuse_modules()
{
	"$CUSE_PYTHON" -IS - "$TOP/test/check/cuse_devices.py" <<-'END'
	import ast, importlib, os, sys
	tree = ast.parse(open(sys.argv[1], encoding="utf-8").read())
	for node in tree.body:
	    if isinstance(node, ast.Import):
	        for alias in node.names:
	            importlib.import_module(alias.name)
	files = {os.path.join(d, f) for d, _, names in os.walk(
	    os.path.dirname(sys.modules["encodings"].__file__)) for f in names}
	for module in list(sys.modules.values()):
	    for name in "__file__", "__cached__":
	        file = getattr(module, name, None)
	        if file and os.path.exists(file):
	            files.add(file)
	print("\n".join(sorted(files - {sys.argv[1]})))
	END
}

# cuse_root ROOT : the files of the machine
cuse_root()
{
	local root=$1 files f

	rm -rf "$root"
	mkdir -p "$root"/{dev,proc,sys,tmp,modules,usr/bin,bin}
	for f in fuse cuse; do
		cp "$CUSE_KERNEL/$f.ko" "$root/modules/"
	done
	mapfile -t files < <(cuse_modules)
	cuse_copy "$root" "$CUSE_PYTHON" /bin/sh /bin/dd "${files[@]}" \
		"$PREFIX/bin/unimem-mailboxd" \
		"$PREFIX/bin/unimem-mailbox-cuse"
	cp "$TOP/test/check/cuse_devices.py" "$root/init"
	chmod 755 "$root/init"
}

# The machine: its console is the output. It ends itself; a panic ends it too.
# Its clock counts instructions, and is not that of a busy host (-icount).
cuse_machine()
{
	local root=$CUSE_MADE/root

	cuse_root "$root"
	(cd "$root" && find . | LC_ALL=C sort |
		cpio --quiet -o -H newc -R 0:0) >"$CUSE_MADE/initramfs"
	rm -rf "$root"
	cat "$CUSE_KERNEL/name"
	timeout -k 10 "$CUSE_LIMIT" qemu-system-x86_64 -accel tcg -cpu max \
		-icount shift=1,sleep=off -m 512 -nodefaults \
		-no-user-config -display none -no-reboot -serial stdio \
		-kernel "$CUSE_KERNEL/vmlinuz" -initrd "$CUSE_MADE/initramfs" \
		-append "console=ttyS0 loglevel=4 panic=-1 nokaslr \
mitigations=off CUSE_PREFIX=$PREFIX" </dev/null |
		sed -u 's,\r$,,'
	rm -f "$CUSE_MADE/initramfs"
}

cuse_command()
{
	local why

	EXIT_HOOKS+=(check_broken)
	packages_need build
	# without it the test is skipped, and says so
	(packages_need cuse) || warn "qemu cannot be installed"
	build_tree
	why=$(cuse_refusal)
	if [ -z "$why" ]; then
		mkdir -p "$CUSE_MADE"
		(cuse_need_kernel) || why="Debian's kernel cannot be fetched"
		CUSE_KERNEL=$CACHE/cuse-kernel-amd64
		export CUSE_KERNEL
	fi
	if [ -n "$why" ]; then
		say "SKIPPED: cuse/machine ($why)"
		skip_suite cuse "$why"
	else
		suite cuse "mailboxes as devices, on Debian's kernel" \
			count_line cuse_machine
	fi
	conclude || [ "$FAILED" -eq 0 ]
}
