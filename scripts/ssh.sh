# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-ssh: the commands of docs/cluster.md as a user of two
# machines types them, with Debian's sshd and ssh: mpirun starts its proxies by
# ssh, and unimem_info asks the other machine by ssh.
#
# The machines "a" and "b" are network namespaces (scripts/cluster.sh) with a
# host name, processes and an sshd of their own. All of it runs in a mount
# namespace and a pid namespace (bare_apart), so whatever ends this script ends
# them. There ssh's configuration and /etc/hosts are files of the folder
# SSH_MADE, the keys are made for this run, and the user's ~/.ssh is empty.

SSH_MADE=$BUILD/ssh
SSH_HOSTS=(a b)
SSH_PIDS=()			# of sshd

# Prints why this cannot be tried here; nothing if it can.
ssh_refusal()
{
	local why p

	why=$(hosts_refusal)
	if [ -n "$why" ]; then
		echo "$why"
		return
	fi
	for p in /usr/sbin/sshd /usr/bin/ssh /usr/bin/ssh-keygen; do
		[ -x "$p" ] || {
			echo "no $p: apt-get install $(packages ssh | xargs)"
			return
		}
	done
	if ! unshare --uts --pid --fork hostname a 2>/dev/null; then
		echo "no namespaces of names and processes here"
	elif getent shadow root | grep -q '^root:!'; then
		echo "root's account is locked: sshd refuses it"
	fi
}

# ---- Machines ------------------------------------------------------------

# Keys and configuration
ssh_files()
{
	local i

	rm -rf "$SSH_MADE"
	mkdir -p "$SSH_MADE/tmp"
	chmod 755 "$SSH_MADE"
	ssh-keygen -q -t ed25519 -N '' -C host -f "$SSH_MADE/host"
	ssh-keygen -q -t ed25519 -N '' -C user -f "$SSH_MADE/user"
	cp "$SSH_MADE/user.pub" "$SSH_MADE/authorized"
	cp /etc/hosts "$SSH_MADE/hosts"
	for i in "${!SSH_HOSTS[@]}"; do
		echo "$(cluster_address $((i + 1))) ${SSH_HOSTS[i]}" |
			tee -a "$SSH_MADE/hosts" | tr ' ' , | tr '\n' ' '
		cut -d ' ' -f 1,2 "$SSH_MADE/host.pub"
	done >"$SSH_MADE/known"
	cat >"$SSH_MADE/sshd_config" <<-END
	HostKey $SSH_MADE/host
	AuthorizedKeysFile $SSH_MADE/authorized
	AuthenticationMethods publickey
	PermitRootLogin yes
	StrictModes no
	UsePAM no
	PidFile none
	END
	cat >"$SSH_MADE/ssh_config" <<-END
	IdentityFile $SSH_MADE/user
	IdentitiesOnly yes
	UserKnownHostsFile $SSH_MADE/known
	StrictHostKeyChecking yes
	BatchMode yes
	ConnectTimeout 5
	END
	mount --bind "$SSH_MADE/hosts" /etc/hosts
	# ssh and sshd read the user's own files there
	[ ! -d ~root/.ssh ] || mount -t tmpfs tmpfs ~root/.ssh
	mount --bind "$SSH_MADE/ssh_config" /etc/ssh/ssh_config
}

# ssh_on NAME COMMAND... : on that machine
ssh_on()
{
	local init
	init=$(cat "$SSH_MADE/init.$1")
	shift

	nsenter -t "$init" --net --uts --mount --pid "$@"
}

# ssh_user COMMAND... : what a user types on machine a; it hangs after two
# minutes
ssh_user() { ssh_on a timeout -k 10 120 "$@"; }

# ssh_boot I NAME : sshd, as the first process of that machine
ssh_boot()
{
	# sshd changes its root to /run/sshd
	# shellcheck disable=SC2016 # the inner shell's dollars
	cluster_enter "$1" "$2" unshare --pid --fork --kill-child sh -c '
		mount -t proc proc /proc && mount -t tmpfs tmpfs /run &&
		mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f "$1"' \
		sh "$SSH_MADE/sshd_config" >"$SSH_MADE/sshd.$2" 2>&1 </dev/null
}

# ssh_answers NAME : wait until machine a reaches it by ssh
ssh_answers()
{
	local tries

	for ((tries = 0; tries < 300; tries++)); do
		pgrep -P "$2" >"$SSH_MADE/init.$1" &&
			ssh_user ssh "$1" true 2>"$SSH_MADE/error" && return
		kill -0 "$2" || break
		sleep 0.1
	done
	cat "$SSH_MADE/error" "$SSH_MADE/sshd.$1"
	die "no ssh to the machine $1"
}

# The machines, until ssh_stop
ssh_start()
{
	local i

	ssh_files
	TMPDIR=$SSH_MADE/tmp cluster_start ${#SSH_HOSTS[@]}
	for i in "${!SSH_HOSTS[@]}"; do
		ssh_boot $((i + 1)) "${SSH_HOSTS[i]}" {CLUSTER_LIFE}>&- &
		SSH_PIDS+=($!)
	done
	for i in "${!SSH_HOSTS[@]}"; do
		ssh_answers "${SSH_HOSTS[i]}" "${SSH_PIDS[i]}"
	done
}

ssh_stop()
{
	[ ${#SSH_PIDS[@]} -gt 0 ] || return 0
	# unshare(1) blocks SIGTERM; sshd, its child, ends with it
	kill -KILL "${SSH_PIDS[@]}" 2>/dev/null || :
	wait "${SSH_PIDS[@]}" 2>/dev/null || :
	SSH_PIDS=()
}

# ---- docs/cluster.md -----------------------------------------------------

# ssh_same COMMAND... : the answer of one machine
ssh_same()
{
	local said

	said=$(ssh_user "$@")
	printf '%s\n' "$said"
	diff <(grep '^answer ' <<<"$said") "$SSH_MADE/one"
}

# The answer of 8 ranks on one machine
ssh_one()
{
	env -u FI_UNIMEM_NET mpirun -n 8 "$HOSTS_MADE/answer" |
		tee /dev/stderr | grep '^answer .* 0$' >"$SSH_MADE/one"
}

# Section 2: one after another, and so many on each
ssh_turns() { ssh_same mpirun -hosts a,b -n 8 "$HOSTS_MADE/answer"; }
ssh_each()  { ssh_same mpirun -hosts a:4,b:4 -n 8 "$HOSTS_MADE/answer"; }

# Section 2: the network by another name on each machine
ssh_names()
{
	ssh_same env -u FI_UNIMEM_NET mpirun -hosts a:4,b:4 \
		-n 4 -env FI_UNIMEM_NET net0 "$HOSTS_MADE/answer" : \
		-n 4 -env FI_UNIMEM_NET "$(cluster_address 2)" \
		"$HOSTS_MADE/answer"
}

# Section 3: what carried the bytes
ssh_carried()
{
	local before stats=$BUILD/demo/cluster-ssh

	before=("$(cluster_sent 1)" "$(cluster_sent 2)")
	rm -rf "$stats"
	mkdir -p "$stats"
	ssh_user ssh b mkdir -p "$stats"
	FI_UNIMEM_STATS=$stats ssh_user mpirun -hosts a,b -n 2 \
		"$BUILD/bench/unm_lat" -m 8,1M -t 0.02 |
		tee "$LOGS/demo-cluster-ssh.log"
	cluster_prove ssh "${before[@]}"
	[ "$(grep -o 'hal=[^ ]*' "$stats"/*.stats | grep -c 'emu+net')" -eq 2 ]
}

# A job of a rank on each machine, each of which waits; sets job. The numbers of
# mpirun and of the ranks, on their machines, are in the folder ranks.
ssh_job()
{
	local tries made=$SSH_MADE/ranks

	rm -rf "$made"
	mkdir "$made"
	# shellcheck disable=SC2016 # the inner shell's dollars
	ssh_on a timeout -k 10 120 sh -c 'echo $$ >"$1/mpirun"
		exec mpirun -hosts a,b -n 2 "$2" "$1"' \
		sh "$made" "$HOSTS_MADE/wait" >"$SSH_MADE/job" 2>&1 </dev/null &
	job=$!
	for ((tries = 0; tries < 600; tries++)); do
		[ ! -s "$made/0" ] || [ ! -s "$made/1" ] || return 0
		kill -0 "$job" || break
		sleep 0.1
	done
	cat "$SSH_MADE/job"
	return 1
}

# ssh_kill NAME FILE SIGNAL : to a process of the job
ssh_kill() { ssh_on "$1" kill "-$3" "$(cat "$SSH_MADE/ranks/$2")"; }

# mpirun has ended, with the exit code rc, and both ranks are gone within a
# minute.
ssh_job_ended()
{
	local tries

	rc=0
	wait "$job" || rc=$?
	cat "$SSH_MADE/job"
	for ((tries = 0; tries < 600; tries++)); do
		ssh_kill a 0 0 2>/dev/null || ssh_kill b 1 0 2>/dev/null ||
			break
		sleep 0.1
	done
	# 124, 137: by timeout, so it did not end by itself
	[ "$tries" -lt 600 ] && [ "$rc" -ne 124 ] && [ "$rc" -ne 137 ]
}

# Section 3: unimem_info shows the interface of each rank behind the name of its
# machine, and no other. SIGTERM to mpirun ends the ranks on both.
ssh_info()
{
	local job i rc

	ssh_job
	ssh_user unimem_info --limit 60 --all-hosts=a,b | tee "$SSH_MADE/info"
	for i in 0 1; do
		echo "${SSH_HOSTS[i]} $(cat "$SSH_MADE/ranks/$i")"
	done | diff - <(awk '$2 ~ /^[0-9]+:[0-9]+$/ { print $1, $3 }' \
		"$SSH_MADE/info")
	ssh_kill a mpirun TERM
	ssh_job_ended
}

# A rank on machine b is killed: the job fails.
ssh_killed()
{
	local job rc

	ssh_job
	ssh_kill b 1 KILL
	ssh_job_ended
	[ "$rc" -ne 0 ]
}

# ---- The command ---------------------------------------------------------

ssh_tests()	# run by bare_apart
{
	mount -t proc proc /proc
	check_env
	EXIT_HOOKS+=(ssh_stop cluster_stop)
	hosts_build
	ssh_start
	export FI_UNIMEM_NET=net0
	smoke_one "the answer of one machine" ssh_one
	smoke_one "mpirun -hosts a,b" ssh_turns
	smoke_one "mpirun -hosts a:4,b:4" ssh_each
	smoke_one "the network by other names" ssh_names
	smoke_one "the counters of endpoints and cables" ssh_carried
	smoke_one "unimem_info --all-hosts, then SIGTERM to mpirun" ssh_info
	smoke_one "a rank on the other machine is killed" ssh_killed
	smoke_end
}

ssh_command()
{
	local why

	[ $# -eq 0 ] || die "check-ssh takes no argument"
	EXIT_HOOKS+=(check_broken)
	why=$(cluster_refusal)
	if [ -z "$why" ] || [ "$(id -u)" -eq 0 ]; then
		build_all
		(packages_need cluster; packages_try ssh) ||
			warn "ssh cannot be installed"
		why=$(ssh_refusal)
	fi
	if [ -n "$why" ]; then
		say "SKIPPED: ssh/two-machines ($why)"
		skip_suite ssh "$why"
	else
		suite ssh "two machines, by ssh" count_line \
			bare_apart ssh_tests
	fi
	conclude || [ "$FAILED" -eq 0 ]
}
