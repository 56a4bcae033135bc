# SPDX-License-Identifier: BSD-2-Clause
#
# The mailbox of a node: libunimem-mailbox.so, unimem-mailboxd, an example.

MBOX_CPPFLAGS = $(UNM_CPPFLAGS) -I$(MAILBOX) -I$(PROV) $(COMMON_CPPFLAGS)

# ---- The daemon: all but its main(), for unit tests too ---------------------

noinst_LTLIBRARIES += libmbox_daemon.la
libmbox_daemon_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libmbox_daemon_la_CPPFLAGS = $(MBOX_CPPFLAGS)
libmbox_daemon_la_SOURCES = \
	mailbox/common/mbox_name.c \
	mailbox/common/mbox_name.h \
	mailbox/common/mbox_notify.c \
	mailbox/common/mbox_notify.h \
	mailbox/common/mbox_wire.h \
	mailbox/daemon/mbox_client.c \
	mailbox/daemon/mbox_client.h \
	mailbox/daemon/mbox_link.c \
	mailbox/daemon/mbox_link.h \
	mailbox/daemon/mbox_reg.c \
	mailbox/daemon/mbox_reg.h

bin_PROGRAMS += unimem-mailboxd
unimem_mailboxd_CPPFLAGS = $(MBOX_CPPFLAGS)
unimem_mailboxd_SOURCES = \
	mailbox/daemon/unimem_mailboxd.c \
	prov/unimem/util/unm_daemon.c \
	prov/unimem/util/unm_daemon.h
unimem_mailboxd_LDADD = libmbox_daemon.la libunimem-hal.la

# ---- Mailboxes as character devices: all but main(), for unit tests too ----

if CUSE
noinst_LTLIBRARIES += libmbox_cuse.la
libmbox_cuse_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libmbox_cuse_la_CPPFLAGS = $(MBOX_CPPFLAGS) $(FUSE3_CFLAGS)
libmbox_cuse_la_LIBADD = $(FUSE3_LIBS)
libmbox_cuse_la_SOURCES = \
	mailbox/common/mbox_notify.c \
	mailbox/common/mbox_notify.h \
	mailbox/common/mbox_wire.h \
	mailbox/cuse/cuse_act.c \
	mailbox/cuse/cuse_act.h \
	mailbox/cuse/cuse_device.c \
	mailbox/cuse/cuse_device.h \
	mailbox/cuse/cuse_file.c \
	mailbox/cuse/cuse_file.h \
	mailbox/cuse/cuse_loop.c \
	mailbox/cuse/cuse_loop.h \
	mailbox/cuse/cuse_open.c \
	mailbox/cuse/cuse_open.h \
	mailbox/cuse/cuse_wait.c \
	mailbox/cuse/cuse_wait.h

bin_PROGRAMS += unimem-mailbox-cuse
unimem_mailbox_cuse_CPPFLAGS = $(MBOX_CPPFLAGS) $(FUSE3_CFLAGS)
unimem_mailbox_cuse_SOURCES = \
	mailbox/cuse/unimem_mailbox_cuse.c \
	prov/unimem/util/unm_daemon.c \
	prov/unimem/util/unm_daemon.h
unimem_mailbox_cuse_LDADD = libmbox_cuse.la libunimem-mailbox.la \
	libunimem-hal.la
endif

# ---- libunimem-mailbox.so, for programs ------------------------------------

# current:revision:age - raise current when mailbox.h changes
lib_LTLIBRARIES += libunimem-mailbox.la
libunimem_mailbox_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libunimem_mailbox_la_CPPFLAGS = -DMBOX_BINDIR='"$(bindir)"' $(MBOX_CPPFLAGS)
libunimem_mailbox_la_SOURCES = \
	mailbox/client/mbox_callback.c \
	mailbox/client/mbox_log.h \
	mailbox/client/mbox_open.c \
	mailbox/client/mbox_start.c \
	mailbox/client/mbox_start.h \
	mailbox/common/mbox_name.c \
	mailbox/common/mbox_name.h \
	mailbox/common/mbox_wire.h \
	prov/unimem/util/unm_start.c \
	prov/unimem/util/unm_start.h
libunimem_mailbox_la_LIBADD = libunimem-hal.la
# nodelete: its thread may run when the library is closed
libunimem_mailbox_la_LDFLAGS = $(AM_LDFLAGS) $(UNM_LDFLAGS) \
	-version-info 0:0:0 -Wl,-z,nodelete

mailboxincludedir = $(includedir)/unimem
mailboxinclude_HEADERS = mailbox/unimem/mailbox.h
pkgconfig_DATA += unimem-mailbox.pc

# ---- Example: run by check-mailbox ------------------------------------------

dist_example_DATA += mailbox/examples/ping.c
MAILBOX_EXAMPLES = mailbox/examples/ping
check_PROGRAMS += $(MAILBOX_EXAMPLES)
mailbox_examples_ping_LDADD = libunimem-mailbox.la
mailbox_examples_ping_LDFLAGS = $(UNWRAPPED)
