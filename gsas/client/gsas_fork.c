/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_fork.c - gsas_fork(), which starts a program on a board, and
 * gsas_argument(), by which that program reads its argument. The path of the
 * program is sent in a page of the board, as published [D 2.2.3].
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_wait.h"

static int fork_there(gsas_addr page, uint64_t arg, uint64_t *pid)
{
	struct gsas_msg msg = {
		.opcode = GSAS_FORK, .arg1 = page, .arg2 = arg,
	};
	struct gsas_conn *conn;
	struct gsas_request request;
	int ret = gsas_conn_of(page, &conn);

	if (ret == 0)
		ret = gsas_request_do(conn, &msg, &request);
	if (ret == 0 && pid != NULL)
		*pid = request.result;
	return ret;
}

int gsas_fork(const char *path, uint64_t arg, int board, uint64_t *pid)
{
	size_t len = path == NULL ? 0 : strnlen(path, GSAS_PATH);
	gsas_addr page;
	int ret;

	if (path == NULL)
		return -FI_EINVAL;
	if (len == 0)
		return -FI_ENOENT;
	if (len == GSAS_PATH)
		return -ENAMETOOLONG;
	ret = gsas_alloc(1, board, GSAS_JOB, NULL, &page);
	if (ret != 0)
		return ret;
	ret = gsas_put(page, path, len + 1);
	if (ret == 0)
		ret = fork_there(page, arg, pid);
	gsas_free(page);		/* the service has copied the path */
	return ret;
}

int gsas_argument(uint64_t *arg)
{
	const char *text = getenv("GSAS_ARGUMENT");
	uint64_t value;
	char *end;

	if (text == NULL || *text == '\0')
		return -FI_ENOENT;
	errno = 0;
	value = strtoull(text, &end, 16);
	if (*end != '\0' || errno != 0)
		return -FI_ENOENT;
	*arg = value;
	return 0;
}
