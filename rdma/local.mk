# SPDX-License-Identifier: BSD-2-Clause
#
# User-initiated RDMA: libunimem-rdma.so, its header, its examples.

noinst_LTLIBRARIES += libunm_rdma.la
libunm_rdma_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libunm_rdma_la_CPPFLAGS = $(UNM_CPPFLAGS) -I$(RDMA) -I$(GSAS) -I$(PROV) \
	$(COMMON_CPPFLAGS) $(HWLOC_CFLAGS)
libunm_rdma_la_SOURCES = \
	rdma/rdma_buffer.c \
	rdma/rdma_buffer.h \
	rdma/rdma_engine.c \
	rdma/rdma_engine.h \
	rdma/rdma_lib.c \
	rdma/rdma_lib.h \
	rdma/rdma_near.c \
	rdma/rdma_near.h \
	rdma/rdma_segment.c \
	rdma/rdma_segment.h \
	rdma/rdma_state.h \
	rdma/rdma_thread.c \
	rdma/rdma_thread.h \
	rdma/rdma_transfer.c \
	prov/unimem/util/unm_topology.c \
	prov/unimem/util/unm_topology.h

# current:revision:age - raise current when unim_dma.h changes
lib_LTLIBRARIES += libunimem-rdma.la
libunimem_rdma_la_SOURCES =
libunimem_rdma_la_LIBADD = libunm_rdma.la libgsas.la libunimem-hal.la
# nodelete: the submitter thread runs in it
libunimem_rdma_la_LDFLAGS = $(AM_LDFLAGS) $(UNM_LDFLAGS) -version-info 0:0:0 \
	-Wl,-z,nodelete

unimincludedir = $(includedir)/unimem
uniminclude_HEADERS = rdma/unimem/unim_dma.h
pkgconfig_DATA += unimem-rdma.pc

# ---- Examples: read by newcomers, run by check-gsas ------------------------

dist_example_DATA += rdma/examples/exchange.c rdma/examples/place.c
RDMA_EXAMPLES = rdma/examples/exchange rdma/examples/place
check_PROGRAMS += $(RDMA_EXAMPLES)
rdma_examples_exchange_LDADD = libunimem-rdma.la
rdma_examples_exchange_LDFLAGS = $(UNWRAPPED)
rdma_examples_place_LDADD = libunimem-rdma.la
rdma_examples_place_LDFLAGS = $(UNWRAPPED)
