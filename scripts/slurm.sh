# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-slurm [N]: jobs of Slurm on hosts that are network
# namespaces (scripts/cluster.sh), with a slurmd and a host name each. MPICH and
# GSAS are those of the user: nothing is configured for Slurm.
#
# All of it runs in a mount namespace and a pid namespace of its own
# (bare_apart): whatever ends this script, SIGKILL included, ends the daemons
# and the jobs. There the folder SL_MADE is mounted on SL_ETC, so Slurm
# reads its configuration at the default path, the paths of its sockets are
# short enough wherever the tree is, and the daemons write into the tree only.
# The folder has the configuration, sockets, logs and states of all daemons.

SL_MADE=$BUILD/slurm
SL_ETC=/etc/slurm		# of Debian's slurm-client
SL_TASKS=4			# that a host is configured for
SL_MOST=8			# hosts: the ranks of a test
SL_PIDS=()			# the daemons, by the time of their start

# slurm_name I : host I, from n09 on: two hosts are n[09-10] for Slurm
slurm_name() { printf 'n%02d\n' $(($1 + 8)); }

# slurm_names N : all hosts in brackets
slurm_names() { printf 'n[09-%02d]\n' $(($1 + 8)); }

# Prints why there can be no jobs of Slurm here; nothing if there can.
slurm_refusal()
{
	local why p

	why=$(hosts_refusal)
	if [ -n "$why" ]; then
		echo "$why"
		return
	fi
	for p in munged slurmctld slurmd srun; do
		if ! have "$p"; then
			echo "no $p: apt-get install" \
				"$(packages slurm | xargs)"
			return
		fi
	done
	if ! [ -d "$SL_ETC" ]; then
		echo "no $SL_ETC: Slurm is not Debian's"
	elif ! unshare --uts hostname n09 2>/dev/null; then
		echo "no host names of namespaces (unshare --uts) here"
	fi
}

# ---- Daemons -------------------------------------------------------------

# slurm_conf N
slurm_conf()
{
	local i

	cat <<-END
	ClusterName=unimem
	SlurmctldHost=$(slurm_name 1)($(cluster_address 1))
	SlurmUser=root
	AuthType=auth/munge
	AuthInfo=socket=$SL_ETC/munge.socket
	CredType=cred/munge
	MpiDefault=none
	ProctrackType=proctrack/linuxproc
	TaskPlugin=task/none
	JobAcctGatherType=jobacct_gather/none
	AccountingStorageType=accounting_storage/none
	SchedulerType=sched/builtin
	SelectType=select/cons_tres
	SelectTypeParameters=CR_CPU
	SlurmdParameters=config_overrides
	StateSaveLocation=$SL_ETC/state
	SlurmdSpoolDir=$SL_ETC/spool.%n
	SlurmctldPidFile=$SL_ETC/slurmctld.pid
	SlurmdPidFile=$SL_ETC/slurmd.%n.pid
	SlurmctldLogFile=$SL_ETC/slurmctld.log
	SlurmdLogFile=$SL_ETC/slurmd.%n.log
	ReturnToService=2
	MessageTimeout=60
	SlurmdTimeout=300
	END
	for ((i = 1; i <= $1; i++)); do
		echo "NodeName=$(slurm_name "$i")" \
			"NodeAddr=$(cluster_address "$i") CPUs=$SL_TASKS"
	done
	echo "PartitionName=all Nodes=$(slurm_names "$1") Default=YES" \
		"OverSubscribe=NO"
}

# slurm_enter I COMMAND... : on host I, with the files of this namespace
slurm_enter()
{
	local host=$1
	shift

	cluster_enter "$host" "$(slurm_name "$host")" "$@"
}

# slurm_daemon NAME COMMAND... : in the background; its output is in NAME.out
slurm_daemon()
{
	local name=$1
	shift

	"$@" >"$SL_MADE/$name.out" 2>&1 </dev/null {CLUSTER_LIFE}>&- &
	SL_PIDS+=($!)
}

# Does each daemon run?
slurm_run()
{
	local pid

	for pid in "${SL_PIDS[@]}"; do
		kill -0 "$pid" 2>/dev/null || return
	done
}

# slurm_until WHAT COMMAND... : wait, for about a minute at most
slurm_until()
{
	local what=$1 end=$((SECONDS + 60))
	shift

	while slurm_run && [ "$SECONDS" -lt "$end" ]; do
		! "$@" || return 0
		sleep 0.1
	done
	tail -n 20 "$SL_MADE"/*.log "$SL_MADE"/*.out
	die "$what: a daemon has ended, or a minute is over"
}

slurm_idle()
{
	[ "$(timeout 5 sinfo -h -t idle -o %D 2>/dev/null)" = "$1" ]
}

# The files of this namespace in place of the system's: Slurm's folder, and the
# names of the hosts
slurm_files()
{
	local i

	rm -rf "$SL_MADE"
	mkdir -p "$SL_MADE/state" "$SL_MADE/tmp"
	chmod 755 "$SL_MADE"
	cp /etc/hosts "$SL_MADE/hosts"
	for ((i = 1; i <= $1; i++)); do
		mkdir "$SL_MADE/spool.$(slurm_name "$i")"
		echo "$(cluster_address "$i") $(slurm_name "$i")" \
			>>"$SL_MADE/hosts"
	done
	slurm_conf "$1" >"$SL_MADE/slurm.conf"
	# slurmd wants one of them; v1 needs no control group to start
	echo CgroupPlugin=cgroup/v1 >"$SL_MADE/cgroup.conf"
	(
		umask 077
		head -c 64 /dev/urandom >"$SL_MADE/munge.key"
		head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' \
			>"$SL_MADE/unimem.key"
	)
	mount --bind "$SL_MADE" "$SL_ETC"
	mount --bind "$SL_MADE/hosts" /etc/hosts
}

# slurm_start N : N hosts, and the daemons
slurm_start()
{
	local i

	slurm_files "$1"
	TMPDIR=$SL_MADE/tmp cluster_start "$1"
	slurm_daemon munged munged --foreground \
		--key-file="$SL_ETC/munge.key" \
		--socket="$SL_ETC/munge.socket" \
		--pid-file="$SL_ETC/munged.pid" \
		--seed-file="$SL_ETC/munged.seed" \
		--log-file="$SL_ETC/munged.log"
	slurm_until munged test -S "$SL_ETC/munge.socket"
	slurm_daemon slurmctld slurm_enter 1 slurmctld -D
	for ((i = 1; i <= $1; i++)); do
		slurm_daemon "slurmd$i" slurm_enter "$i" slurmd -D \
			-N "$(slurm_name "$i")"
	done
	slurm_until "hosts that are ready" slurm_on 1 \
		"$TOP/scripts/step" slurm_idle "$1"
}

# The daemons of hosts, then munged
slurm_stop()
{
	local i

	for ((i = ${#SL_PIDS[@]} - 1; i >= 0; i--)); do
		kill "${SL_PIDS[i]}" 2>/dev/null || :
	done
	for ((i = 0; i < 100; i++)); do
		kill -0 "${SL_PIDS[@]}" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "${SL_PIDS[@]}" 2>/dev/null || :
	wait
	SL_PIDS=()
}

# slurm_on I COMMAND... : as slurm_enter, in the foreground
slurm_on() { (slurm_enter "$@"); }

# slurm_user COMMAND... : what a user types on the first host; it hangs after
# two minutes
slurm_user() { slurm_on 1 timeout -k 10 120 "$@"; }

# slurm_in FUNCTION ARGS... : one of this file, in an allocation of all hosts
slurm_in()
{
	slurm_user salloc -N "$SL_N" -n 8 "$BASH" "$TOP/scripts/step" "$@"
}

# ---- MPI -----------------------------------------------------------------

# slurm_same FILE : the answer of one host
slurm_same()
{
	cat "$1"
	grep '^answer ' "$1" | cmp - "$SL_MADE/one"
}

# slurm_one : the answer of 8 ranks on one host, without Slurm
slurm_one()
{
	if ! env -u FI_UNIMEM_NET mpirun -n 8 "$HOSTS_MADE/answer" \
			>"$SL_MADE/one" ||
	   ! grep -q '^answer .* 0$' "$SL_MADE/one"; then
		cat "$SL_MADE/one"
		return 1
	fi
}

slurm_srun()
{
	slurm_user srun --mpi=pmi2 -N "$SL_N" -n 8 "$HOSTS_MADE/answer" \
		>"$SL_MADE/srun"
	slurm_same "$SL_MADE/srun"
}

# Without --mpi=pmi2 each task is a job of one rank: docs/cluster.md says so.
slurm_alone()
{
	slurm_user srun -N 2 -n 2 "$HOSTS_MADE/answer" >"$SL_MADE/alone"
	[ "$(grep -c '^answer ' "$SL_MADE/alone")" -eq 2 ]
}

slurm_mpirun()
{
	slurm_user salloc -N "$SL_N" -n 8 mpirun -n 8 "$HOSTS_MADE/answer" \
		>"$SL_MADE/mpirun"
	slurm_same "$SL_MADE/mpirun"
}

# Both in a batch script
slurm_batch()
{
	printf '#!/bin/sh\n%s\n%s\n' "mpirun -n 8 $HOSTS_MADE/answer" \
		"srun --mpi=pmi2 -n 8 $HOSTS_MADE/answer" >"$SL_MADE/batch"
	slurm_user sbatch -W -N "$SL_N" -n 8 -o "$SL_MADE/batch.out" \
		"$SL_MADE/batch"
	cat "$SL_MADE/batch.out"
	grep '^answer ' "$SL_MADE/batch.out" |
		cmp - <(cat "$SL_MADE/one" "$SL_MADE/one")
}

# The counters of the endpoints and of the cables, of a rank on each of two
# hosts: each has the board of its host.
slurm_carried()
{
	local before stats=$BUILD/demo/cluster-slurm f

	before=("$(cluster_sent 1)" "$(cluster_sent 2)")
	rm -rf "$stats"
	mkdir -p "$stats"
	FI_UNIMEM_STATS=$stats slurm_user srun --mpi=pmi2 -N 2 -n 2 \
		-w "$(slurm_names 2)" "$BUILD/bench/unm_lat" -m 8,1M -t 0.02 |
		tee "$LOGS/demo-cluster-slurm.log"
	cluster_prove slurm "${before[@]}"
	for f in "$stats"/*.stats; do
		stat_of "$f" board
	done | sort | xargs | grep -x "0 1"
}

# The variables by which GSAS recognises a step of Slurm whose slurmstepd is
# hidden (gsas_launcher.c)
slurm_variables()
{
	# shellcheck disable=SC2016 # the task's shell
	slurm_user srun --mpi=pmi2 -N 2 -n 4 sh -c '
		echo "$PMI_JOBID $PMI_RANK: \
$SLURM_JOB_ID.$SLURM_STEP_ID $SLURM_PROCID"' |
		tee "$SL_MADE/variables"
	[ "$(grep -cE '^([0-9]+\.[0-9]+ [0-9]+): \1$' \
		"$SL_MADE/variables")" -eq 4 ]
}

# ---- GSAS ----------------------------------------------------------------

SL_HALO=$OBJ/gsas/examples/halo

# slurm_right COMMAND... : the members found each other, and computed the same
# as one process
slurm_right()
{
	"$@" | tee /dev/stderr | grep '^[0-9]* members, .* 0 wrong$'
}

# The tasks of one host, by each launcher. The service starts by itself.
slurm_gsas()
{
	unset GSAS_JOB
	slurm_right slurm_user srun -N 1 -n 4 "$SL_HALO"
	slurm_right slurm_user srun --mpi=pmi2 -N 1 -n 4 "$SL_HALO"
	slurm_right slurm_user salloc -N 1 -n 4 mpirun -n 4 "$SL_HALO"
}

SL_NOBODY=(setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups)

# Prints why no program of this tree can be run by an ordinary user.
slurm_nobody_refusal()
{
	local p

	for p in "$SL_HALO" "$PREFIX/bin/gsasd"; do
		"${SL_NOBODY[@]}" test -x "$p" 2>/dev/null || {
			echo "an ordinary user cannot run ${p#"$TOP"/}"
			return
		}
	done
}

# A user who does not see slurmstepd: the variables of PMI decide, or only those
# of Slurm are there.
slurm_nobody()
{
	local as=("${SL_NOBODY[@]}")

	unset GSAS_JOB FI_UNIMEM_NET FI_UNIMEM_NET_KEY
	slurm_user "${as[@]}" srun -N 1 -n 1 ps -e -o comm= >"$SL_MADE/seen"
	cat "$SL_MADE/seen"
	[ -s "$SL_MADE/seen" ]
	if grep slurmstepd "$SL_MADE/seen"; then
		return 1
	fi
	slurm_right slurm_user "${as[@]}" srun -N 1 -n 4 "$SL_HALO"
	slurm_right slurm_user "${as[@]}" srun --mpi=pmi2 -N 1 -n 4 "$SL_HALO"
}

# slurm_served N OF : so many of these boards have a service; wait 40 s for it.
# gsasctl is a client: asked more often than once a second (gsasd --linger), a
# service that started by itself would not end.
slurm_served()
{
	local i

	for ((i = 0; i < 20; i++)); do
		gsasctl boards >"$SL_MADE/boards" || :
		! grep -qx "$1 of $2 boards have a service" \
			"$SL_MADE/boards" || break
		sleep 2
	done
	cat "$SL_MADE/boards"
	[ "$i" -lt 20 ]
}

# slurm_hosted COMMAND... : while each host of this allocation has services.
# One that started by itself for the step before ends first: gsasd does not
# replace it.
slurm_hosted()
{
	local n=$((SL_N * ${FI_UNIMEM_BOARDS:-1})) rc=0 services

	slurm_served 0 "$n"
	srun --overlap -N "$SL_N" -n "$SL_N" --ntasks-per-node=1 \
		gsasd --all &
	services=$!
	if slurm_served "$n" "$n"; then
		"$BASH" "$TOP/scripts/step" "$@" || rc=$?
	else
		rc=1
	fi
	kill "$services"
	wait "$services" || :
	return "$rc"
}

# Tasks on all hosts
slurm_members()
{
	unset GSAS_JOB
	slurm_right srun --overlap -N "$SL_N" -n 8 "$SL_HALO"
	slurm_right srun --overlap --mpi=pmi2 -N "$SL_N" -n 8 "$SL_HALO"
	slurm_right mpirun -n 8 "$SL_HALO"
}

# The boards are those of the hosts in SLURM_JOB_NODELIST, in brackets, seen
# from a task on each host
slurm_listed()
{
	local i host

	echo "SLURM_JOB_NODELIST=$SLURM_JOB_NODELIST"
	[ "$SLURM_JOB_NODELIST" = "$(slurm_names "$SL_N")" ]
	for ((i = 0; i < 2 * SL_N; i++)); do
		echo "$i $(slurm_name $((i / 2 + 1)))"
	done >"$SL_MADE/want"
	for host in $(scontrol show hostnames); do
		srun --overlap -N 1 -n 1 -w "$host" gsasctl boards |
			awk '$1 ~ /^[0-9]+$/ && $2 != "of" { print $1, $NF }' |
			diff "$SL_MADE/want" -
	done
}

slurm_gsas_hosts() { slurm_in slurm_hosted slurm_members; }
slurm_list() { FI_UNIMEM_BOARDS=2 slurm_in slurm_hosted slurm_listed; }

# ---- The command ---------------------------------------------------------

# slurm_tests N ; run by bare_apart
slurm_tests()
{
	local v why

	# an ordinary user does not see the processes of slurmd (root)
	mount -t proc -o hidepid=2 proc /proc
	# of a job of Slurm in which this runs
	for v in "${!SLURM@}" "${!PMI@}" "${!SALLOC@}" "${!SBATCH@}" \
		"${!SRUN@}"; do
		unset "$v"
	done
	check_env
	EXIT_HOOKS+=(slurm_stop cluster_stop)
	hosts_build
	slurm_start "$1"
	slurm_on 1 sinfo
	export SL_N=$1 FI_UNIMEM_NET=net0
	export FI_UNIMEM_NET_KEY=$SL_MADE/unimem.key
	smoke_one "the answer of one host" slurm_one
	smoke_one "srun --mpi=pmi2, the same answer" slurm_srun
	smoke_one "the counters of endpoints and cables" slurm_carried
	smoke_one "mpirun in an allocation" slurm_mpirun
	smoke_one "a batch script" slurm_batch
	smoke_one "srun without --mpi=pmi2" slurm_alone
	smoke_one "variables of Slurm and PMI" slurm_variables
	smoke_one "GSAS, tasks of one host" slurm_gsas
	why=$(slurm_nobody_refusal)
	if [ -z "$why" ]; then
		smoke_one "GSAS, a user who does not see slurmstepd" \
			slurm_nobody
	else
		SMOKE_SKIPPED=$((SMOKE_SKIPPED + 1))
		say "SKIPPED: slurm/nobody ($why)"
	fi
	smoke_one "GSAS, tasks of $1 hosts" slurm_gsas_hosts
	smoke_one "the list of hosts" slurm_list
	smoke_end
}

slurm_command()
{
	local n=${1:-2} why

	if ! [[ $n =~ ^[0-9]$ ]] || [ "$n" -lt 2 ] || [ "$n" -gt "$SL_MOST" ]
	then
		die "check-slurm $n: from 2 to $SL_MOST hosts"
	fi
	EXIT_HOOKS+=(check_broken)
	why=$(cluster_refusal)
	if [ -z "$why" ] || [ "$(id -u)" -eq 0 ]; then
		build_all
		(packages_need cluster; packages_try slurm) ||
			warn "Slurm cannot be installed"
		why=$(slurm_refusal)
	fi
	if [ -n "$why" ]; then
		say "SKIPPED: slurm/jobs ($why)"
		skip_suite slurm "$why"
	else
		step slurm-programs "building the example of GSAS" \
			"make -C build/obj gsas/examples/halo shows why." \
			make -s -C "$OBJ" gsas/examples/halo
		suite slurm "jobs of Slurm on $n hosts" count_line \
			bare_apart slurm_tests "$n"
	fi
	conclude || [ "$FAILED" -eq 0 ]
}
