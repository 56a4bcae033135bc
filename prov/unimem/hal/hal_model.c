/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_model.c - reads the figures of the timing model from a file.
 *
 * Entry point: hal_model_load(). A line is "name = value unit # kind: source".
 * Each figure has to be there once, with its unit, its kind and its source: a
 * report that names the file then says where each of its figures is from.
 * docs/model.md describes the file; hal_time.c makes times of the figures.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "hal/hal_log.h"
#include "hal/hal_model.h"

#ifndef HAL_MODEL_DIR
#define HAL_MODEL_DIR	"/usr/local/share/unimem"
#endif

/* ---- Figures ----------------------------------------------------------- */

enum figure_type { FIGURE_TIME, FIGURE_RATE, FIGURE_SPEED, FIGURE_COUNT };

/* Units of each type, with the factor to ns, to stores per second, to bytes
 * per second, or to 1. The list ends with a NULL. */
static const struct unit {
	const char *name;
	double factor;
} units[][4] = {
	[FIGURE_TIME] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 } },
	[FIGURE_RATE] = { { "k/s", 1e3 }, { "M/s", 1e6 } },
	[FIGURE_SPEED] = { { "MB/s", 1e6 }, { "GB/s", 1e9 } },
	[FIGURE_COUNT] = { { "packets", 1 }, { "stores", 1 } },
};

#define FIELD(name)	#name, offsetof(struct hal_model, name)

/* min and max: in ns, per second, bytes per second, or as a number. Packets and
 * words of a process that ended have to arrive in half a second (LAST_NS in
 * emu/hal_emu_stamp.c): hence the limits of latencies and gap. */
static const struct figure {
	const char *name;
	size_t offset;			/* in struct hal_model */
	enum figure_type type;
	double min, max;
	const char *allowed;
} figures[] = {
	{ FIELD(packet_latency), FIGURE_TIME, 0, 1e8, "0 ns to 100 ms" },
	{ FIELD(packet_gap), FIGURE_TIME, 0, 1e5, "0 ns to 100 us" },
	{ FIELD(fifo_depth), FIGURE_COUNT, 2, 64,
	  "a power of 2 from 2 to 64 packets" },
	{ FIELD(store_latency), FIGURE_TIME, 0, 1e8, "0 ns to 100 ms" },
	{ "store_rate", offsetof(struct hal_model, store_time), FIGURE_RATE,
	  1e3, 1e9, "1 k/s to 1000 M/s" },
	{ "line_rate", offsetof(struct hal_model, line_time), FIGURE_RATE,
	  1e3, 1e9, "1 k/s to 1000 M/s" },
	{ FIELD(store_queue), FIGURE_COUNT, 1, 64, "1 to 64 stores" },
	{ FIELD(load_round_trip), FIGURE_TIME, 0, 1e9, "0 ns to 1000 ms" },
	{ FIELD(dma_setup), FIGURE_TIME, 0, 1e9, "0 ns to 1000 ms" },
	{ FIELD(dma_bandwidth), FIGURE_SPEED, 1e6, 1e12,
	  "1 MB/s to 1000 GB/s" },
	{ FIELD(route_registration), FIGURE_TIME, 0, 1e9, "0 ns to 1000 ms" },
};
#define NFIGURES	(sizeof(figures) / sizeof(figures[0]))

/* The file that is being read. */
struct reader {
	const char *path;
	int line;			/* number of the line, from 1 */
	bool seen[NFIGURES];
	struct hal_model model;
};

static bool power_of_2(uint64_t n)
{
	return (n & (n - 1)) == 0;
}

/* Read a number without sign or exponent, as "12" or "0.5", in any locale.
 * Returns the text after it, or NULL. */
static const char *parse_number(const char *text, double *val)
{
	double number = 0, scale = 0;
	size_t digits = 0;

	for (; isdigit((unsigned char)*text) || (*text == '.' && scale == 0);
	     text++) {
		if (*text == '.') {
			scale = 1;
			continue;
		}
		number = number * 10 + (*text - '0');
		scale *= 10;
		digits++;
	}
	*val = scale != 0 ? number / scale : number;
	return digits != 0 ? text : NULL;
}

/* Store a value, "number unit", into the figure's field. */
static int put_value(struct hal_model *model, const struct figure *f,
		     const char *text)
{
	uint64_t *field = (uint64_t *)((char *)model + f->offset);
	const struct unit *u = units[f->type];
	const char *end;
	double val;

	end = parse_number(text, &val);
	if (end == NULL || (*end != ' ' && *end != '\t'))
		return -FI_EINVAL;
	end += strspn(end, " \t");
	while (u->name != NULL && strcmp(u->name, end) != 0)
		u++;
	val *= u->factor;
	/* a number is at most 254 digits: it is finite */
	if (u->name == NULL || val < f->min || val > f->max)
		return -FI_EINVAL;
	if (f->type == FIGURE_COUNT && val != (double)(uint64_t)val)
		return -FI_EINVAL;
	/* the model needs the time between two stores */
	if (f->type == FIGURE_RATE)
		val = 1e9 / val;
	*field = (uint64_t)(val + 0.5);
	return field == &model->fifo_depth && !power_of_2(*field) ?
	       -FI_EINVAL : 0;
}

/* Is a comment "kind: source"? */
static bool has_source(const char *comment)
{
	static const char *const kinds[] = {
		"measured:", "bound:", "assumed:",
	};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i]);

		if (strncmp(comment, kinds[i], len) == 0)
			return comment[len + strspn(comment + len, " \t")] !=
			       '\0';
	}
	return false;
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

static int refuse(const struct reader *r, const char *name, const char *why)
{
	hal_log(0, "%s:%d: %s: %s", r->path, r->line, name, why);
	return -FI_EINVAL;
}

/* name, value and comment are trimmed. */
static int take_figure(struct reader *r, const char *name, const char *value,
		       const char *comment)
{
	char why[80];
	unsigned i;

	for (i = 0; i < NFIGURES; i++)
		if (strcmp(name, figures[i].name) == 0)
			break;
	if (i == NFIGURES)
		return refuse(r, name, "no figure of the model is called so: "
			      "see docs/model.md");
	if (r->seen[i])
		return refuse(r, name, "the figure was given before");
	snprintf(why, sizeof(why), "use %s", figures[i].allowed);
	if (put_value(&r->model, &figures[i], value) != 0)
		return refuse(r, name, why);
	if (!has_source(comment))
		return refuse(r, name, "end the line with \"# measured: "
			      "SOURCE\", \"# bound: SOURCE\" or \"# assumed: "
			      "REASON\"");
	r->seen[i] = true;
	return 0;
}

static int take_line(struct reader *r, char *line)
{
	char *comment = strchr(line, '#'), *value;

	if (comment != NULL)
		*comment++ = '\0';
	line = trim(line);
	if (*line == '\0')
		return 0;
	value = strchr(line, '=');
	if (value == NULL)
		return refuse(r, line, "write it as name = value unit # kind: "
			      "source");
	*value++ = '\0';
	return take_figure(r, trim(line), trim(value),
			   comment != NULL ? trim(comment) : "");
}

static int take_file(struct reader *r, FILE *file)
{
	char line[256];
	int ret = 0;

	while (ret == 0 && fgets(line, sizeof(line), file) != NULL) {
		r->line++;
		if (strlen(line) == sizeof(line) - 1 &&
		    line[sizeof(line) - 2] != '\n')
			ret = refuse(r, "the line", "it is longer than 254 "
				     "characters");
		else
			ret = take_line(r, line);
	}
	for (unsigned i = 0; i < NFIGURES && ret == 0; i++)
		if (!r->seen[i])
			ret = refuse(r, figures[i].name, "the figure is "
				     "missing");
	/* a load returns behind the stores before it, docs/hal.md 4.10 */
	if (ret == 0 && r->model.load_round_trip < r->model.store_latency)
		ret = refuse(r, "load_round_trip", "a load is not faster than "
			     "a store: store_latency is longer");
	return ret;
}

int hal_model_load(const char *name, struct hal_model *model)
{
	struct reader r = { .path = r.model.path };
	FILE *file;
	int ret;

	snprintf(r.model.path, sizeof(r.model.path), "%s",
		 strcmp(name, "exanode") == 0 ?
		 HAL_MODEL_DIR "/exanode.model" : name);
	file = fopen(r.model.path, "re");
	if (file == NULL) {
		hal_log(0, "FI_UNIMEM_MODEL=%s: cannot read the figures of the "
			"timing model in %s: %s", name, r.model.path,
			strerror(errno));
		return -FI_EINVAL;
	}
	ret = take_file(&r, file);
	fclose(file);
	if (ret == 0)
		*model = r.model;
	return ret;
}
