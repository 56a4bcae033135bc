/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_launcher.c - the job and the rank of this process, as the launcher of
 * parallel programs gives them.
 *
 * Each launcher gives something else that all processes of a job share:
 *
 *	Hydra	(mpiexec of MPICH) HYDRA_JOB, a name that no other mpiexec has,
 *		if its MPICH has mpich-patches/hydra-job.patch. Otherwise no
 *		name: the processes of a host descend from one process mpiexec,
 *		or from one hydra_pmi_proxy if mpiexec runs on another host, and
 *		the key is made of that process. A rank has PMI_FD and PMI_RANK,
 *		with -pmi-port PMI_PORT and PMI_ID and no number of ranks.
 *	PMIx	(Open MPI, PRRTE) PMIX_NAMESPACE. Open MPI 4 makes it of 16
 *		bits, and PRRTE of a host and a process id, which the host uses
 *		again after all others. So the address of mpirun is added where
 *		the environment has it, and the process of mpirun if all ranks
 *		run on this host. The 16 bits alone are no key.
 *	Slurm	the numbers of job and step, which a cluster does not use twice.
 *
 * The key is no secret (docs/gsas.md, section 2): it must differ between jobs
 * of one user, and the service keeps users apart. So it is a hash without a
 * cryptographic claim.
 *
 * If the variables of several launchers are set, one launcher was started by
 * another. Then the nearest ancestor that is a launcher decides. Slurm's daemon
 * belongs to another user, who may be hidden in /proc: if no ancestor is seen,
 * variables of PMI or PMIx that have the numbers of the job step are Slurm's.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/gsas_launcher.h"
#include "util/unm_random.h"

#define ANCESTORS_MAX	64	/* processes between rank and launcher */
#define NAME_MAX_COMM	16	/* bytes of a process name, with its 0 */
#define ARGUMENTS_MAX	8192	/* bytes of a proxy's path, and of its first
				 * arguments: --control-port, --job */
/* Steps of Slurm from here on are the shells of salloc and sbatch, from which a
 * user starts unrelated programs. */
#define SLURM_STEPS	UINT64_C(0xfffffff0)

enum kind { NONE, HYDRA, PMIX, SLURM };

/* ---- The hash ------------------------------------------------------------ */

static void add_word(uint64_t hash[2], uint64_t word)
{
	hash[0] = unm_mix(hash[0] ^ word);
	hash[1] = unm_mix(hash[1] + word * UINT64_C(0x9E3779B97F4A7C15));
}

/* The text and its length, so that "ab", "c" differs from "a", "bc". NULL is
 * added as an empty text. */
static void add_text(uint64_t hash[2], const char *text)
{
	size_t len = text != NULL ? strlen(text) : 0;

	add_word(hash, len);
	for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
		size_t left = len - i;
		uint64_t word = 0;

		memcpy(&word, text + i,
		       left < sizeof(word) ? left : sizeof(word));
		add_word(hash, word);
	}
}

/* ---- Ancestors ----------------------------------------------------------- */

struct process {
	int pid, parent;
	unsigned long long start;	/* clock ticks since the boot */
	char name[NAME_MAX_COMM];
};

/* The process pid, from /proc; 0: this process, whose id in /proc differs from
 * getpid() if /proc is of another namespace. false: the process has ended or is
 * hidden. */
static bool read_process(int pid, struct process *p)
{
	char path[32] = "/proc/self/stat", text[512], *begin, *end;
	ssize_t len;
	int fd, n;

	if (pid != 0)
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return false;
	text[len] = '\0';
	begin = strchr(text, '(');
	end = strrchr(text, ')');	/* a name may contain brackets */
	if (begin == NULL || end == NULL || end - begin > NAME_MAX_COMM)
		return false;
	*end = '\0';
	snprintf(p->name, sizeof(p->name), "%s", begin + 1);
	p->pid = (int)strtol(text, NULL, 10);
	/* fields 4 and 22 of proc(5) */
	n = sscanf(end + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u "
		   "%*u %*d %*d %*d %*d %*d %*d %llu", &p->parent, &p->start);
	return n == 2;
}

/* The parent of a process. The process id of a parent is not used again while
 * it is the parent, so it is compared after the parent was read. */
static bool read_parent(const struct process *child, struct process *parent)
{
	struct process again;

	return child->parent > 0 && read_process(child->parent, parent) &&
	       read_process(child->pid, &again) &&
	       again.parent == child->parent && again.start == child->start;
}

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names != NULL && strcmp(name, *names) != 0)
		names++;
	return *names != NULL;
}

static enum kind kind_of(const char *name)
{
	static const char *const pmix[] = {
		"mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.openmpi",
		"orterun", "orted", "prterun", "prte", "prted", NULL
	};

	if (strcmp(name, "hydra_pmi_proxy") == 0)
		return HYDRA;
	if (strcmp(name, "slurmstepd") == 0)
		return SLURM;
	return is_one_of(name, pmix) ? PMIX : NONE;
}

/* The nearest ancestor that is a launcher. */
static enum kind nearest(struct process *found)
{
	struct process p, parent;
	enum kind kind = NONE;

	if (!read_process(0, &p))
		return NONE;
	for (int i = 0; kind == NONE && i < ANCESTORS_MAX; i++) {
		if (!read_parent(&p, &parent))
			return NONE;
		p = parent;
		kind = kind_of(p.name);
	}
	*found = p;
	return kind;
}

/* Add what names a process for ever: host and boot, namespace, id, start. */
static bool add_process(uint64_t hash[2], const struct process *p)
{
	char boot[64];
	struct stat ns;
	ssize_t len;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	len = read(fd, boot, sizeof(boot) - 1);
	close(fd);
	if (len <= 0 || stat("/proc/self/ns/pid", &ns) != 0)
		return false;
	boot[len] = '\0';
	add_text(hash, boot);
	add_word(hash, ns.st_ino);
	add_word(hash, (uint64_t)p->pid);
	add_word(hash, p->start);
	return true;
}

/* ---- Launchers ----------------------------------------------------------- */

static bool is_set(const char *name)
{
	const char *text = secure_getenv(name);

	return text != NULL && *text != '\0';
}

/* A decimal number in the environment, up to UINT32_MAX. false: there is
 * none. */
static bool number_in(const char *name, uint64_t *number)
{
	const char *text = secure_getenv(name);
	unsigned long long n;
	char *end;

	if (text == NULL || *text < '0' || *text > '9')
		return false;
	n = strtoull(text, &end, 10);
	if (*end != '\0' || n > UINT32_MAX)
		return false;
	*number = n;
	return true;
}

/* Are the variables of mpiexec -pmi-port set? Ranks connect to their proxy
 * then, and inherit no socket. */
static bool hydra_port(void)
{
	return is_set("PMI_PORT") && is_set("PMI_ID");
}

static bool hydra_set(void)
{
	return (is_set("PMI_FD") && is_set("PMI_RANK")) || hydra_port();
}

/* Store the beginning of the arguments of a process, each with its 0. Returns
 * their length, less than ARGUMENTS_MAX; text[length] is 0. */
static size_t read_arguments(int pid, char text[ARGUMENTS_MAX])
{
	char path[32];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, text, ARGUMENTS_MAX - 1);
	if (fd >= 0)
		close(fd);
	len = len < 0 ? 0 : len;
	text[len] = '\0';
	return (size_t)len;
}

/*
 * The name of the job that this proxy has started; NULL: there is none.
 *
 * HYDRA_JOB may be of an outer mpiexec: an inner one without the patch passes
 * its environment on to all hosts. A proxy that was started by ssh may lack the
 * variable, so the environment of the proxy proves nothing. But mpiexec gives
 * the name to its own proxies as an argument, which is not inherited.
 */
static const char *hydra_job(const struct process *proxy)
{
	const char *name = secure_getenv("HYDRA_JOB");
	char text[ARGUMENTS_MAX];
	size_t len, at = 0;

	if (name == NULL || *name == '\0')
		return NULL;
	len = read_arguments(proxy->pid, text);
	while (at < len && strcmp(text + at, "--job") != 0)
		at += strlen(text + at) + 1;
	at += sizeof("--job");
	return at < len && strcmp(text + at, name) == 0 ? name : NULL;
}

/* proxy: the hydra_pmi_proxy of this process */
static bool hydra_key(uint64_t hash[2], const struct process *proxy)
{
	static const char *const starters[] = {
		"mpiexec.hydra", "mpiexec", "mpirun", "mpiexec.mpich",
		"mpirun.mpich", NULL
	};
	const char *job = hydra_job(proxy);
	struct process starter;

	if (job != NULL) {
		add_text(hash, job);
		return true;
	}
	if (read_parent(proxy, &starter) && is_one_of(starter.name, starters))
		proxy = &starter;
	return add_process(hash, proxy);
}

static bool pmix_key(uint64_t hash[2], enum kind kind,
		     const struct process *launcher)
{
	const char *name = secure_getenv("PMIX_NAMESPACE");
	uint64_t all, here;

	add_text(hash, name);
	add_text(hash, secure_getenv("OMPI_MCA_orte_hnp_uri"));
	if (kind == PMIX && number_in("OMPI_COMM_WORLD_SIZE", &all) &&
	    number_in("OMPI_COMM_WORLD_LOCAL_SIZE", &here) && all == here)
		return add_process(hash, launcher);
	/* Open MPI 4 has digits only */
	return is_set("OMPI_MCA_orte_hnp_uri") ||
	       strspn(name, "0123456789") != strlen(name);
}

static bool slurm_key(uint64_t hash[2])
{
	uint64_t job, step, restarts = 0;

	if (!number_in("SLURM_JOB_ID", &job) ||
	    !number_in("SLURM_STEP_ID", &step) || step >= SLURM_STEPS)
		return false;
	/* a job that is queued again keeps its number */
	(void)number_in("SLURM_RESTART_COUNT", &restarts);
	add_word(hash, job);
	add_word(hash, step);
	add_word(hash, restarts);
	return true;
}

/* Is this the number of the job step of Slurm, after a prefix? */
static bool is_step(const char *name, const char *prefix)
{
	const char *text = secure_getenv(name);
	uint64_t job, step;
	char own[80];

	if (text == NULL || !number_in("SLURM_JOB_ID", &job) ||
	    !number_in("SLURM_STEP_ID", &step))
		return false;
	snprintf(own, sizeof(own), "%s%" PRIu64 ".%" PRIu64, prefix, job, step);
	return strcmp(text, own) == 0;
}

/* Do these variables have the same number? */
static bool is_same(const char *a, const char *b)
{
	uint64_t x, y;

	return number_in(a, &x) && number_in(b, &y) && x == y;
}

/* Are the variables of PMI and PMIx that are set those that srun sets? A
 * launcher that srun has started gives its processes other ranks. */
static bool is_of_slurm(bool pmi, bool pmix)
{
	return (!pmi || (is_step("PMI_JOBID", "") &&
			 is_same("PMI_RANK", "SLURM_PROCID"))) &&
	       (!pmix || (is_step("PMIX_NAMESPACE", "slurm.pmix.") &&
			  is_same("PMIX_RANK", "SLURM_PROCID")));
}

/* The launcher of this process, by the variables that it sets. *found: nearest
 * ancestor that is a launcher, of kind *ancestor; NONE: not known. */
static enum kind launcher(struct process *found, enum kind *ancestor)
{
	bool hydra = hydra_set();
	bool pmix = is_set("PMIX_NAMESPACE") && is_set("PMIX_RANK");
	bool slurm = is_set("SLURM_STEP_ID") && is_set("SLURM_PROCID");

	*ancestor = hydra || pmix || slurm ? nearest(found) : NONE;
	if (!hydra && pmix != slurm)
		return pmix ? PMIX : SLURM;
	if ((*ancestor == HYDRA && hydra) || (*ancestor == PMIX && pmix) ||
	    (*ancestor == SLURM && slurm))
		return *ancestor;
	return *ancestor == NONE && slurm && is_of_slurm(hydra, pmix) ?
	       SLURM : NONE;
}

bool gsas_launcher_key(uint64_t key[2])
{
	enum kind ancestor, kind;
	struct process process;
	uint64_t hash[2] = { 0, 0 };
	bool known = false;

	kind = launcher(&process, &ancestor);
	add_word(hash, kind);
	if (kind == HYDRA)
		known = hydra_key(hash, &process);
	else if (kind == PMIX)
		known = pmix_key(hash, ancestor, &process);
	else if (kind == SLURM)
		known = slurm_key(hash);
	if (known)
		memcpy(key, hash, sizeof(hash));
	return known;
}

bool gsas_launcher_split(void)
{
	enum kind ancestor;
	struct process process;
	uint64_t here, all;

	return is_set("PMI_FD") && number_in("MPI_LOCALNRANKS", &here) &&
	       number_in("PMI_SIZE", &all) && here < all &&
	       !(launcher(&process, &ancestor) == HYDRA &&
		 hydra_job(&process) != NULL);
}

bool gsas_launcher_evident(void)
{
	uint64_t step;

	return hydra_set() ||
	       (is_set("PMIX_NAMESPACE") && is_set("PMIX_RANK")) ||
	       (is_set("SLURM_PROCID") && number_in("SLURM_STEP_ID", &step) &&
		step < SLURM_STEPS);
}

bool gsas_launcher_rank(uint32_t *rank, uint32_t *ranks)
{
	static const char *const names[][2] = {
		[HYDRA] = { "PMI_RANK", "PMI_SIZE" },
		[PMIX] = { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
		[SLURM] = { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" },
	};
	enum kind ancestor, kind;
	struct process process;
	uint64_t index, count;

	kind = launcher(&process, &ancestor);
	/* with -pmi-port, PMI_RANK and PMI_SIZE are of an outer mpiexec */
	if (kind == NONE || (kind == HYDRA && hydra_port()) ||
	    !number_in(names[kind][0], &index) ||
	    !number_in(names[kind][1], &count) || index >= count)
		return false;
	*rank = (uint32_t)index;
	*ranks = (uint32_t)count;
	return true;
}
