/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_dir.c - reads the directory of a job's hosts, and numbers their
 * boards.
 *
 * hal_net_dir.h declares the entry points. Every text ends in a directory whose
 * names are valid and different and whose boards are at most NET_DIR_BOARDS, or
 * in one log line.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_errno.h>

#include "hal/hal_log.h"
#include "hal/net/hal_net_dir.h"

/* ---- Hosts ------------------------------------------------------------- */

/* A directory that grows. */
struct reader {
	struct net_dir *dir;
	uint32_t room;			/* hosts for which dir->host has
					 * memory */
	const char *from;		/* name of the text, for log lines */
	int line;			/* number of its line, 0: it has none */
	uint32_t boards;		/* of a host without boards= */
	char name[NET_DIR_NAME];	/* Slurm's list: name that is made */
	const char *end;		/* and the end of its description */
};

/* Log that the text is wrong. len bytes of `what` say where. */
static int wrong(const struct reader *r, const char *what, size_t len,
		 const char *why)
{
	char where[32] = "";
	char part[64];
	size_t n = len < sizeof(part) - 1 ? len : sizeof(part) - 1;

	if (r->line != 0)
		snprintf(where, sizeof(where), ", line %d", r->line);
	for (size_t i = 0; i < n; i++)
		part[i] = isprint((unsigned char)what[i]) ? what[i] : '?';
	part[n] = '\0';
	hal_log(0, "%s%s: %s: %s", r->from, where, part, why);
	return -FI_EINVAL;
}

bool net_dir_ip(const char *text, uint8_t ip[16])
{
	uint8_t v4[16] = { [10] = 0xff, [11] = 0xff };

	if (inet_pton(AF_INET, text, v4 + 12) == 1) {
		memcpy(ip, v4, 16);
		return true;
	}
	return inet_pton(AF_INET6, text, ip) == 1;
}

/* Is every byte one of a host name or an IP address? */
static bool name_valid(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) &&
		    strchr("-._:", name[i]) == NULL)
			return false;
	return len != 0 && len < NET_DIR_NAME && name[0] != '-' &&
		memchr(name, '\0', len) == NULL;
}

static int add(struct reader *r, const char *name, size_t len, uint32_t boards)
{
	struct net_dir *dir = r->dir;
	struct net_dir_host *host;

	if (!name_valid(name, len))
		return wrong(r, name, len, "no name and no IP address of a "
			     "host");
	if (boards > NET_DIR_BOARDS - dir->boards)
		return wrong(r, name, len, "more than 65535 boards with those "
			     "of the hosts before");
	if (dir->nhosts == r->room) {
		r->room = r->room != 0 ? 2 * r->room : 8;
		host = realloc(dir->host, r->room * sizeof(*host));
		if (host == NULL)
			return -FI_ENOMEM;
		dir->host = host;
	}
	host = &dir->host[dir->nhosts++];
	memset(host, 0, sizeof(*host));
	memcpy(host->name, name, len);
	host->has_ip = net_dir_ip(host->name, host->ip);
	if (!host->has_ip && strchr(host->name, ':') != NULL)
		return wrong(r, name, len, "no IP address");
	host->first = dir->boards;
	host->boards = boards;
	dir->boards += boards;
	return 0;
}

/* Do two names mean the same host? One may lack the domain. */
static bool same_name(const char *a, const char *b)
{
	size_t la = strcspn(a, "."), lb = strcspn(b, ".");

	if (a[la] != '\0' && b[lb] != '\0')
		return strcasecmp(a, b) == 0;
	return la == lb && strncasecmp(a, b, la) == 0;
}

/* Are two lines the same host? Then by_host() puts them side by side. */
static bool same_host(const struct net_dir_host *x,
		      const struct net_dir_host *y)
{
	return x->has_ip == y->has_ip &&
		(x->has_ip ? memcmp(x->ip, y->ip, 16) == 0 :
		 same_name(x->name, y->name));
}

/* Addresses, then names by their first part; a name without a domain is before
 * those with one, and lines that are equal keep their order. */
static int by_host(const void *a, const void *b)
{
	const struct net_dir_host *x = *(const struct net_dir_host *const *)a;
	const struct net_dir_host *y = *(const struct net_dir_host *const *)b;
	size_t lx = strcspn(x->name, "."), ly = strcspn(y->name, ".");
	int d;

	if (x->has_ip != y->has_ip)
		return x->has_ip ? -1 : 1;
	if (x->has_ip)
		d = memcmp(x->ip, y->ip, 16);
	else
		d = strncasecmp(x->name, y->name, lx < ly ? lx : ly);
	if (d == 0 && !x->has_ip)
		d = lx != ly ? (lx < ly ? -1 : 1) :
			strcasecmp(x->name, y->name);
	return d != 0 ? d : x < y ? -1 : 1;
}

/* Refuse a directory that has no host, or one of them twice. */
static int check(const struct reader *r)
{
	const struct net_dir *dir = r->dir;
	const struct net_dir_host **sorted;
	int ret = 0;

	if (dir->nhosts == 0) {
		hal_log(0, "%s: names no host", r->from);
		return -FI_EINVAL;
	}
	sorted = malloc(dir->nhosts * sizeof(const struct net_dir_host *));
	if (sorted == NULL)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < dir->nhosts; i++)
		sorted[i] = &dir->host[i];
	qsort(sorted, dir->nhosts, sizeof(sorted[0]), by_host);
	for (uint32_t i = 1; i < dir->nhosts && ret == 0; i++)
		if (same_host(sorted[i - 1], sorted[i])) {
			hal_log(0, "%s: names %s twice, also as %s", r->from,
				sorted[i]->name, sorted[i - 1]->name);
			ret = -FI_EINVAL;
		}
	free(sorted);
	return ret;
}

static int reader_open(struct reader *r, const char *from, uint32_t boards)
{
	memset(r, 0, sizeof(*r));
	r->from = from;
	r->boards = boards;
	r->dir = calloc(1, sizeof(*r->dir));
	return r->dir == NULL ? -FI_ENOMEM : 0;
}

static int reader_close(struct reader *r, int ret, struct net_dir **dir)
{
	if (ret == 0) {
		r->line = 0;
		ret = check(r);
	}
	if (ret != 0)
		net_dir_free(r->dir);
	else
		*dir = r->dir;
	return ret;
}

void net_dir_free(struct net_dir *dir)
{
	if (dir != NULL)
		free(dir->host);
	free(dir);
}

/* ---- Numbers ----------------------------------------------------------- */

/* Read len bytes as a decimal number of at most max. -1: they are none. */
static int64_t number(const char *text, size_t len, int64_t max)
{
	int64_t val = 0;

	if (len == 0)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)text[i]))
			return -1;
		val = 10 * val + (text[i] - '0');
		if (val > max)
			return -1;
	}
	return val;
}

/* ---- Hosts file -------------------------------------------------------- */

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Cut the next word off *text, which ends at end. Its length; 0: none. */
static size_t word(const char **text, const char *end, const char **at)
{
	while (*text < end && blank(**text))
		(*text)++;
	*at = *text;
	while (*text < end && !blank(**text))
		(*text)++;
	return (size_t)(*text - *at);
}

static int read_line(struct reader *r, const char *line, const char *end)
{
	static const char key[] = "boards=";
	const size_t klen = sizeof(key) - 1;
	const char *name, *opt, *rest;
	size_t len = word(&line, end, &name), olen, rlen;
	int64_t boards = r->boards;

	olen = word(&line, end, &opt);
	rlen = word(&line, end, &rest);
	if (len == 0)
		return 0;		/* empty, or a comment */
	if (rlen != 0)
		return wrong(r, rest, rlen, "use: host [boards=N]");
	if (olen != 0) {
		if (olen < klen || memcmp(opt, key, klen) != 0)
			return wrong(r, opt, olen, "use: host [boards=N]");
		boards = number(opt + klen, olen - klen, NET_DIR_BOARDS);
		if (boards < 1)
			return wrong(r, opt, olen, "use 1 to 65535 boards");
	}
	return add(r, name, len, (uint32_t)boards);
}

int net_dir_read(const char *text, size_t len, const char *from,
		 uint32_t boards, struct net_dir **dir)
{
	const char *end = text + len;
	struct reader r;
	int ret = reader_open(&r, from, boards);

	while (ret == 0 && text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		const char *hash;

		if (eol == NULL)
			eol = end;
		hash = memchr(text, '#', (size_t)(eol - text));
		r.line++;
		ret = read_line(&r, text, hash != NULL ? hash : eol);
		text = eol + 1;
	}
	return r.dir == NULL ? ret : reader_close(&r, ret, dir);
}

/* ---- Slurm's list ------------------------------------------------------ */

static int expand(struct reader *r, size_t len, const char *rest);

/* Append a number of at least `width` digits to the name, then the rest. */
static int expand_number(struct reader *r, size_t len, int64_t value,
			 size_t width, const char *rest)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%0*lld", (int)width,
			 (long long)value);

	if (n < 0 || (size_t)n >= sizeof(digits) ||
	    len + (size_t)n >= NET_DIR_NAME)
		return wrong(r, r->name, len, "a name that is too long");
	memcpy(r->name + len, digits, (size_t)n);
	return expand(r, len + (size_t)n, rest);
}

/* One of the parts between [ and ]: a number or a range of numbers. */
static int expand_part(struct reader *r, size_t len, const char *part,
		       const char *stop, const char *rest)
{
	const char *dash = memchr(part, '-', (size_t)(stop - part));
	size_t width = (size_t)((dash != NULL ? dash : stop) - part);
	int64_t from = number(part, width, INT32_MAX), to = from;
	int ret = 0;

	if (dash != NULL)
		to = number(dash + 1, (size_t)(stop - dash - 1), INT32_MAX);
	if (from < 0 || to < from || to - from >= NET_DIR_BOARDS || width > 16)
		return wrong(r, part, (size_t)(stop - part),
			     "no range of numbers");
	for (int64_t i = from; i <= to && ret == 0; i++)
		ret = expand_number(r, len, i, width, rest);
	return ret;
}

/* The parts between [ and ]; text begins after the bracket. */
static int expand_list(struct reader *r, size_t len, const char *text)
{
	const char *close = memchr(text, ']', (size_t)(r->end - text));
	const char *stop = NULL;
	int ret = 0;

	if (close == NULL)
		return wrong(r, text, (size_t)(r->end - text), "] is missing");
	while (ret == 0 && stop != close) {
		stop = memchr(text, ',', (size_t)(close - text));
		if (stop == NULL)
			stop = close;
		ret = expand_part(r, len, text, stop, close + 1);
		text = stop + 1;
	}
	return ret;
}

/* Append what stands before the next [ to the name, which has len bytes; then
 * each of the numbers; at the end there is a host. A call for each bracket: the
 * length of a name bounds the depth. */
static int expand(struct reader *r, size_t len, const char *rest)
{
	const char *open = memchr(rest, '[', (size_t)(r->end - rest));
	size_t n = (size_t)((open != NULL ? open : r->end) - rest);

	if (len + n >= NET_DIR_NAME)
		return wrong(r, rest, n, "a name that is too long");
	memcpy(r->name + len, rest, n);
	if (open == NULL)
		return add(r, r->name, len + n, r->boards);
	return expand_list(r, len + n, open + 1);
}

int net_dir_slurm(const char *list, const char *from, uint32_t boards,
		  struct net_dir **dir)
{
	struct reader r;
	int ret = reader_open(&r, from, boards);

	while (ret == 0 && *list != '\0') {
		const char *end = list;
		bool inside = false;

		for (; *end != '\0' && (inside || *end != ','); end++)
			inside = *end == '[' || (inside && *end != ']');
		r.end = end;
		ret = expand(&r, 0, list);
		list = *end == ',' ? end + 1 : end;
	}
	return r.dir == NULL ? ret : reader_close(&r, ret, dir);
}

/* ---- Searching --------------------------------------------------------- */

static bool is_self(const struct net_dir_host *host, const uint8_t (*ip)[16],
		    int nips, const char *const *name, int nnames)
{
	for (int i = 0; i < nips && host->has_ip; i++)
		if (memcmp(host->ip, ip[i], 16) == 0)
			return true;
	for (int i = 0; i < nnames && !host->has_ip; i++)
		if (same_name(host->name, name[i]))
			return true;
	return false;
}

int net_dir_self(const struct net_dir *dir, const uint8_t (*ip)[16], int nips,
		 const char *const *name, int nnames, uint32_t other[2])
{
	int found = NET_DIR_NONE;

	for (uint32_t i = 0; i < dir->nhosts; i++) {
		if (!is_self(&dir->host[i], ip, nips, name, nnames))
			continue;
		if (found >= 0) {
			other[0] = (uint32_t)found;
			other[1] = i;
			return NET_DIR_TWICE;
		}
		found = (int)i;
	}
	return found;
}

int net_dir_find(const struct net_dir *dir, const char *name)
{
	uint8_t ip[16];
	bool has_ip = net_dir_ip(name, ip);

	for (uint32_t i = 0; i < dir->nhosts; i++) {
		const struct net_dir_host *host = &dir->host[i];

		if (has_ip ? host->has_ip && memcmp(host->ip, ip, 16) == 0 :
		    strcasecmp(host->name, name) == 0)
			return (int)i;
	}
	return -1;
}

int net_dir_of_board(const struct net_dir *dir, uint32_t board)
{
	uint32_t low = 0, high = dir->nhosts;

	if (board >= dir->boards)
		return -1;
	while (high - low > 1) {	/* the last host that begins by then */
		uint32_t mid = low + (high - low) / 2;

		if (dir->host[mid].first <= board)
			low = mid;
		else
			high = mid;
	}
	return (int)low;
}

uint16_t net_dir_port(int base, uint32_t board, uint32_t iface)
{
	uint64_t port = (uint64_t)base + (uint64_t)board * NET_DIR_IFS + iface;

	return iface < NET_DIR_IFS && port <= UINT16_MAX ? (uint16_t)port : 0;
}
