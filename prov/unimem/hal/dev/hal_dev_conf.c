/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_conf.c - the platform file: which boards exist and how to reach them.
 *
 * docs/porting.md describes the file. Every key has a default, so a machine
 * needs the file only if the driver's node or the register blocks are not at
 * their usual places. The log lines for nodes and registers that cannot be
 * opened are here too, because they name the keys of the file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "hal/dev/hal_dev_conf.h"
#include "hal/dev/hal_dev_types.h"

#define PLATFORM_FILE	"/etc/unimem.conf"

/* ---- Values ------------------------------------------------------------ */

/* The put_ functions parse one value. Each returns 0 or -FI_EINVAL. */

static int put_name(char *out, size_t room, const char *text)
{
	size_t len = strlen(text);

	if (len == 0 || len >= room)
		return -FI_EINVAL;
	memcpy(out, text, len + 1);
	return 0;
}

static int put_number(uint64_t *out, const char *text, uint64_t min,
		      uint64_t max)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (end == text || *end != '\0' || errno != 0 || *text == '-' ||
	    *out < min || *out > max)
		return -FI_EINVAL;
	return 0;
}

static int put_u32(uint32_t *out, const char *text, uint32_t min, uint32_t max)
{
	uint64_t val;

	if (put_number(&val, text, min, max) != 0)
		return -FI_EINVAL;
	*out = (uint32_t)val;
	return 0;
}

static int put_pow2(uint32_t *out, const char *text, uint32_t min, uint32_t max)
{
	if (put_u32(out, text, min, max) != 0 || (*out & (*out - 1)) != 0)
		return -FI_EINVAL;
	return 0;
}

/* A register block: node@offset. */
static int put_block(struct hal_platform_block *out, const char *text)
{
	const char *at = strchr(text, '@');
	char node[sizeof(out->node)];

	if (at == NULL || (size_t)(at - text) >= sizeof(node))
		return -FI_EINVAL;
	memcpy(node, text, (size_t)(at - text));
	node[at - text] = '\0';
	if (put_name(out->node, sizeof(out->node), node) != 0)
		return -FI_EINVAL;
	return put_number(&out->base, at + 1, 0, UINT64_MAX - UINT32_MAX);
}

static int put_engine(enum hal_platform_engine *out, const char *text)
{
	static const char *const names[] = { "kernel", "simple", "sg" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(text, names[i]) == 0) {
			*out = (enum hal_platform_engine)i;
			return 0;
		}
	}
	return -FI_EINVAL;
}

/* ---- Keys -------------------------------------------------------------- */

enum key {
	KEY_NODE, KEY_BOARDS, KEY_BOARD, KEY_MIF, KEY_PIF, KEY_CDMA,
	KEY_PACKETS, KEY_SPACE, KEY_ENGINE, KEY_COUNT
};

static const struct {
	const char *name, *allowed;
} keys[KEY_COUNT] = {
	[KEY_NODE] = { "node", "a device node of up to 63 characters" },
	[KEY_BOARDS] = { "boards", "1 to 64" },
	[KEY_BOARD] = { "board", "0 to 63" },
	[KEY_MIF] = { "mif", "node@offset" },
	[KEY_PIF] = { "pif", "node@offset" },
	[KEY_CDMA] = { "cdma", "node@offset" },
	[KEY_PACKETS] = { "packets", "a power of 2 from 2 to 64" },
	[KEY_SPACE] = { "space", "a power of 2 from 4096 to 16777216" },
	[KEY_ENGINE] = { "engine", "kernel, simple or sg" },
};

/* Parse the value of a key into the platform. */
static int put_value(struct hal_platform *pf, enum key key, const char *text)
{
	switch (key) {
	case KEY_NODE:
		return put_name(pf->node, sizeof(pf->node), text);
	case KEY_BOARDS:
		return put_u32(&pf->boards, text, 1, HAL_REG_BOARDS_MAX);
	case KEY_BOARD:
		return put_u32(&pf->board, text, 0, HAL_REG_BOARDS_MAX - 1);
	case KEY_MIF:
		return put_block(&pf->mif, text);
	case KEY_PIF:
		return put_block(&pf->pif, text);
	case KEY_CDMA:
		return put_block(&pf->cdma, text);
	case KEY_PACKETS:
		return put_pow2(&pf->pkt_depth, text, 2, DEV_DEPTH_MAX);
	case KEY_SPACE:
		return put_pow2(&pf->space_bytes, text, DEV_PAGE, 1u << 24);
	case KEY_ENGINE:
		return put_engine(&pf->engine, text);
	default:
		return -FI_EINVAL;
	}
}

/* ---- Lines ------------------------------------------------------------- */

/* Cut off blanks at both ends of a string; returns its new start. */
static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t\r\n");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r\n", end[-1]) != NULL)
		*--end = '\0';
	return text;
}

/* Parse a line of the platform file; blank lines and comments are valid. */
static int parse_line(struct hal_platform *pf, const char *path, int number,
		      char *line)
{
	char *value;
	unsigned k;

	line[strcspn(line, "#")] = '\0';
	line = trim(line);
	if (*line == '\0')
		return 0;
	value = strchr(line, '=');
	if (value == NULL) {
		hal_log(0, "%s:%d: \"%s\": write it as key = value", path,
			number, line);
		return -FI_EINVAL;
	}
	*value++ = '\0';
	line = trim(line);
	value = trim(value);
	for (k = 0; k < KEY_COUNT; k++)
		if (strcmp(line, keys[k].name) == 0)
			break;
	if (k == KEY_COUNT) {
		hal_log(0, "%s:%d: no key is called \"%s\": see "
			"docs/porting.md", path, number, line);
		return -FI_EINVAL;
	}
	if (put_value(pf, (enum key)k, value) == 0)
		return 0;
	hal_log(0, "%s:%d: %s = %s: use %s", path, number, line, value,
		keys[k].allowed);
	return -FI_EINVAL;
}

/* Parse the platform file. must: a file that does not exist is an error. */
static int parse_file(struct hal_platform *pf, const char *path, bool must)
{
	FILE *file = fopen(path, "re");
	char line[256];
	int ret = 0;

	if (file == NULL) {
		if (!must && errno == ENOENT)
			return 0;
		hal_log(0, "cannot read the platform file %s: %s", path,
			strerror(errno));
		return -FI_EINVAL;
	}
	for (int n = 1; ret == 0 && fgets(line, sizeof(line), file); n++) {
		if (strlen(line) == sizeof(line) - 1 &&
		    line[sizeof(line) - 2] != '\n') {
			hal_log(0, "%s:%d: the line is longer than %zu "
				"characters", path, n, sizeof(line) - 2);
			ret = -FI_EINVAL;
		} else {
			ret = parse_line(pf, path, n, line);
		}
	}
	fclose(file);
	return ret;
}

/* A node with "%u" needs the number of the local board. from: where the node is
 * configured. */
static int check_node(const struct hal_platform *pf, const char *from)
{
	if (strstr(pf->node, "%u") == NULL || pf->board != UINT32_MAX)
		return 0;
	hal_log(0, "%s: %%u in %s is the place of the board's number: say it "
		"by board = beside node = in the platform file", from,
		pf->node);
	return -FI_EINVAL;
}

/* On a machine without boards this costs two failed system calls. */
bool hal_dev_present(const struct hal_params *params)
{
	return params->dev[0] != '\0' || access(HAL_KDEV_NODE, F_OK) == 0 ||
	       access(PLATFORM_FILE, F_OK) == 0;
}

int dev_platform_probe(const struct hal_params *params,
		       struct hal_platform *pf)
{
	const char *dev = params->dev, *file = dev_platform_file(params);
	int ret;

	memset(pf, 0, sizeof(*pf));
	put_name(pf->node, sizeof(pf->node), HAL_KDEV_NODE);
	pf->board = UINT32_MAX;
	if (strncmp(dev, "/dev/", 5) == 0) {
		if (put_name(pf->node, sizeof(pf->node), dev) == 0)
			return check_node(pf, "FI_UNIMEM_DEV");
		hal_log(0, "FI_UNIMEM_DEV=%s: use %s", dev,
			keys[KEY_NODE].allowed);
		return -FI_EINVAL;
	}
	ret = parse_file(pf, file, *dev != '\0');
	return ret == 0 ? check_node(pf, file) : ret;
}

const char *dev_platform_file(const struct hal_params *params)
{
	bool other = params->dev[0] != '\0' &&
		     strncmp(params->dev, "/dev/", 5) != 0;

	return other ? params->dev : PLATFORM_FILE;
}

int dev_platform_node(const struct hal_platform *pf, uint32_t board, char *out,
		      size_t room)
{
	const char *at = strstr(pf->node, "%u");
	int n;

	if (at == NULL)
		n = snprintf(out, room, "%s", pf->node);
	else if (board == UINT32_MAX)
		return -EINVAL;		/* check_node() has refused it */
	else
		n = snprintf(out, room, "%.*s%u%s", (int)(at - pf->node),
			     pf->node, board, at + 2);
	return n < 0 || (size_t)n >= room ? -EINVAL : 0;
}

/* ---- Explanations ------------------------------------------------------ */

int dev_explain_open(const struct hal_dev *dev, uint32_t board, int err)
{
	char node[96];

	if (dev_platform_node(&dev->platform, board, node, sizeof(node)) != 0)
		snprintf(node, sizeof(node), "%s", dev->platform.node);
	switch (err) {
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		hal_log(0, "FI_UNIMEM_HAL=%s: no kernel device %s: load the "
			"board's driver (modprobe unimem), name its node in "
			"FI_UNIMEM_DEV, or use FI_UNIMEM_HAL=emu",
			dev->io->backend, node);
		break;
	case -EACCES:
	case -EPERM:
		hal_log(0, "not allowed to open %s: join the group that \"ls "
			"-l %s\" shows (usermod -aG), or have a udev rule "
			"set it", node, node);
		break;
	default:
		hal_log(0, "cannot open %s: %s%s", node, strerror(-err),
			hal_log_advice(err, ": dmesg shows the driver's "
			"reason; FI_UNIMEM_HAL=emu does without boards"));
	}
	return err == -EMFILE ? -FI_EMFILE :
	       err == -ENOMEM ? -FI_ENOMEM : -FI_ENODEV;
}

void dev_explain_map(const struct hal_dev *dev, enum hal_kdev_block which,
		     int err)
{
	const struct hal_platform *pf = &dev->platform;
	enum key key = which == HAL_KDEV_MIF ? KEY_MIF :
		       which == HAL_KDEV_PIF ? KEY_PIF : KEY_CDMA;
	const struct hal_platform_block *block = key == KEY_MIF ? &pf->mif :
		key == KEY_PIF ? &pf->pif : &pf->cdma;
	const char *node = block->node, *why = strerror(-err);
	const char *file = dev_platform_file(&dev->hal.params);

	if (err == -EMFILE || err == -ENFILE ||
	    (err == -ENOMEM && *node != '\0'))
		hal_log(0, "cannot map the %s registers of %s: %s: raise %s",
			keys[key].name, *node != '\0' ? node : pf->node, why,
			err == -ENOMEM ? "RLIMIT_AS (ulimit -v)" :
			"RLIMIT_NOFILE (ulimit -n)");
	else if (*node == '\0')
		hal_log(0, "the driver behind %s does not map its %s "
			"registers: %s: dmesg shows its reason; %s = "
			"node@offset in %s names another node for them",
			pf->node, keys[key].name, why, keys[key].name, file);
	else if (err == -ENOENT || err == -ENXIO || err == -ENODEV)
		hal_log(0, "%s: %s = %s: %s: load the driver of that node "
			"(modprobe uio_pdrv_genirq), or name the right one",
			file, keys[key].name, node, why);
	else if (err == -EACCES || err == -EPERM)
		hal_log(0, "%s: %s = %s: %s: join the group that \"ls -l %s\" "
			"shows (usermod -aG), or have a udev rule set it",
			file, keys[key].name, node, why, node);
	else
		hal_log(0, "%s: %s = %s@0x%llx: cannot map a page of it: %s: "
			"correct the offset; \"head /sys/class/uio/*/maps/*/*"
			"\" shows those of UIO", file, keys[key].name, node,
			(unsigned long long)block->base, why);
}
