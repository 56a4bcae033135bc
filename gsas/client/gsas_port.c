/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_port.c - connections to services that belong to no thread, for another
 * library. It only combines the parts of the client; gsas_port.h defines the
 * functions.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/gsas_connect.h"
#include "client/gsas_direct.h"
#include "client/gsas_log.h"
#include "client/gsas_port.h"
#include "client/gsas_wait.h"

int gsas_port_open(const char *version, int board, struct gsas_thread **port)
{
	if (strcmp(version, PACKAGE_VERSION) != 0) {
		gsas_log("libgsas is of version " PACKAGE_VERSION ", its "
			 "caller of version %s: install both of one version",
			 version);
		return -ELIBBAD;
	}
	return gsas_thread_new(board, port);
}

void gsas_port_close(struct gsas_thread *port)
{
	/* a forked child frees its copies, also where the kernel has not wiped
	 * the page */
	if (port->pid != (int)getpid())
		port->hot->live = false;
	gsas_thread_free(port);
}

int gsas_port_conn(struct gsas_thread *port, int board,
		   struct gsas_conn **conn)
{
	return gsas_conn_get(port, board, conn);
}

int gsas_port_ask(struct gsas_conn *conn, struct gsas_msg *msg,
		  struct gsas_request *request)
{
	int ret = 0;

	if (msg->len > 0) {
		ret = gsas_space_wait(conn, 0, msg->len, msg, NULL);
		msg->arg2 = msg->off;
	}
	return ret != 0 ? ret : gsas_request_do(conn, msg, request);
}

int gsas_port_begin(struct gsas_conn *conn, const struct gsas_msg *msg,
		    struct gsas_request *request)
{
	gsas_request_begin(request, conn->thread->number);
	return gsas_conn_try_send(conn, msg, request);
}

bool gsas_port_progress(struct gsas_thread *port)
{
	return gsas_poll_step(port);
}
