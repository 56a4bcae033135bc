#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The installed headers stand alone, in strict C and in C++; the manual has the
# functions of GSAS, of RDMA and of the mailbox as the headers declare them, all
# of them; what the paper prints compiles unchanged; the examples of the manual
# compile.
. "$(dirname "$0")/check-lib.sh"

compiles()
{
	command -v "$1" >/dev/null 2>&1 || {
		missing=$1
		return
	}
	tried=1
	# as it is after the installation: <rdma/fi_ext_unimem.h>, <gsas.h>
	"$@" -Wall -Wextra -Werror -fsyntax-only -isystem "$tmp" - <"$tmp/x" &&
		return
	echo "$what does not compile with $*"
	failed=1
}

# prototypes HEADER PAGE... : a line for each "TYPE NAME(ARGUMENTS);" in the
# synopses of those pages that say it is in this header
prototypes()
{
	awk -v header="$1" '
	BEGIN { ARGV[1] = "" }
	/^\.Sh / { on = 0 }
	/^\.Sh SYNOPSIS/ { synopsis = 1 }
	synopsis && /^\.In / { on = $2 == header; synopsis = 0 }
	on && /^\.Ft / { type = substr($0, 5); gsub(/"/, "", type) }
	on && /^\.Fn / {
		name = $2
		args = $0
		sub(/^\.Fn [^ ]+ "/, "", args)
		gsub(/" "/, ", ", args)
		sub(/"$/, "", args)
		print type " " name "(" args ");"
	}' "$@"
}

# the names of what a header exports
exported()
{
	tr '\n' ' ' <"$1" | grep -oE "$2 [^;(]*[ *][A-Za-z0-9_]+\(" |
		sed 's/($//; s/.*[ *]//' | LC_ALL=C sort
}

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/rdma" && cp prov/unimem/fi_ext_unimem.h "$tmp/rdma" &&
	cp gsas/gsas.h gsas/gsas_generic.h gsas/gsas_types.h gsas/atomic.h \
		"$tmp" || exit 99
mkdir "$tmp/unimem" && cp rdma/unimem/unim_dma.h mailbox/unimem/mailbox.h \
	"$tmp/unimem" || exit 99
failed=0
tried=
missing=

for what in rdma/fi_ext_unimem.h gsas.h gsas_generic.h atomic.h \
	unimem/unim_dma.h unimem/mailbox.h; do
	echo "#include <$what>" >"$tmp/x"
	compiles "${CC:-cc}" -x c -std=c99
	compiles c++ -x c++ -std=c++11
done

# The listing of section 2.4.2 of the paper, tmp = *(*(array + 3) + 5), with the
# types of the ordinary program that it was.
what="the paper's listing"
cat >"$tmp/x" <<'LISTING'
#include <atomic.h>
uint64_t listing(void);
uint64_t listing(void)
{
	uint64_t **array = (uint64_t **)allocSharedPage(1, 0);
	uint64_t *row = (uint64_t *)allocSharedPage(1, getNumberBoards() - 1);
	uint64_t (*read)(uint64_t *addr) = READ64;

	WRITE64(array + 3, (uint64_t)row);
	row = (uint64_t *)READ64(array + 3);
	FAD64(row + 5, 1);
	return READ64(row + 5) + read(row);
}
LISTING
for std in c99 gnu17; do
	compiles "${CC:-cc}" -x c -std=$std
done
compiles c++ -x c++ -std=c++11

# The typed calls, which are macros in C and overloaded functions in C++
what="the typed calls"
cat >"$tmp/x" <<'LISTING'
#include <gsas_generic.h>
int typed(gsas_addr at, double *real, uint16_t *half);
int typed(gsas_addr at, double *real, uint16_t *half)
{
	return gsas_get_value(at, real) + gsas_put_value(at, *half) +
	       gsas_update_value(at, GSAS_OP_SUM, 1.0f) +
	       gsas_fetch_value(at, GSAS_OP_MAX, 1, real) +
	       gsas_compare_swap(at, 1, 2, half) +
	       gsas_put_value(at, LLONG_MAX) + gsas_put_value(at, LONG_MAX);
}
LISTING
compiles "${CC:-cc}" -x c -std=c11
compiles c++ -x c++ -std=c++11

# The prototypes of section 3.4 of the paper, each as it is printed, and the
# uses that its text describes.
what="the paper's prototypes of RDMA"
cat >"$tmp/x" <<'LISTING'
#include <unimem/unim_dma.h>
#ifdef __cplusplus
extern "C" {
#endif
int unim_dma_init(unim_node_id_t node_id);
void unim_dma_cleanup(void);
unim_dma_buffer_t *unim_alloc_buf_l(uint32_t size);
unim_dma_buffer_t *unim_alloc_buf_r(uint32_t size, unim_dma_node_t node);
void unim_free_buf(unim_dma_buffer_t *buf);
unim_dma_buffer_t *unim_get_buf(unim_dma_buf_id_t id);
unim_dma_buf_id_t unim_get_buf_id(unim_dma_buffer_t *buf);
void *unim_buf_get_memory(unim_dma_buffer_t *buf);
unim_dma_transfer_id_t unim_dma_submit_transfer(unim_dma_buffer_t *src,
unim_dma_buffer_t *dst, uint64_t src_off, uint64_t dst_off, uint64_t size,
unim_comp_cb_t comp_cb, void *cb_arg);
unim_dma_transfer_id_t unim_dma_submit_transfer_from_mem(void *src,
unim_dma_buffer_t *dst, uint64_t src_off, uint64_t dst_off, uint64_t size,
unim_comp_cb_t comp_cb, void *cb_arg);
unim_dma_transfer_id_t
unim_dma_submit_transfer_to_mem(unim_dma_buffer_t *src, void *dst,
uint64_t src_off, uint64_t dst_off, uint64_t size, unim_comp_cb_t comp_cb, void
*cb_arg);
unim_dma_status_t unim_dma_status(unim_dma_transfer_id_t tID);
unim_dma_node_t unim_dma_get_node(unim_node_id_t id);
int uses(unim_dma_transfer_t *transfer);
#ifdef __cplusplus
}
#endif
static void called(void *arg)
{
	*(int *)arg = 1;
}
int uses(unim_dma_transfer_t *transfer)
{
	unim_dma_buffer_t *src = NULL, *dst = NULL;
	unim_dma_transfer_id_t id;
	int done = 0;
	void (*callback)(void *) = called;

	if (unim_dma_init(0) != 0 || unim_dma_get_node(1) == NULL)
		return 1;
	src = unim_alloc_buf_l(4096);
	dst = unim_alloc_buf_r(4096, unim_dma_get_node(1));
	id = unim_dma_submit_transfer(src, dst, 0, 0, 4096, callback, &done);
	if (id == 0 || transfer == NULL)
		return 1;
	switch (unim_dma_status(id)) {
	case DMA_PENDING:
	case DMA_STARTED:
		return 2;
	case DMA_COMPLETED:
		return 0;
	case DMA_FAILED:
		break;
	}
	return done;
}
LISTING
for std in c99 gnu17; do
	compiles "${CC:-cc}" -x c -std=$std
done
compiles c++ -x c++ -std=c++11

# The prototypes and the structure of section 3.2 of the paper, as printed: in C
# and in C++ a second declaration has to agree. The structure by its fields.
what="the paper's mailbox"
cat >"$tmp/x" <<'LISTING'
#include <unistd.h>
#include <unimem/mailbox.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef int (*mailbox_callback) (long long unsigned);
int mailbox_register_callback(unsigned opcode, mailbox_callback cb,
char *description);
int mailbox_unregister_callback (unsigned opcode);
int mailbox_send_message(int rnode , long long unsigned val);
int listing(int local, int remote, int event_fd);
#ifdef __cplusplus
}
#endif
static int on_message(long long unsigned val)
{
	return val >> 60 == 0xf ? 0 : -1;
}
int listing(int local, int remote, int event_fd)
{
	struct mailbox_action_t action;
	long long unsigned val = 0xf000000000000001ULL;
	char description[] = "listing";

	action.action = 'e';
	action.opcode = 0xf;
	action.val = event_fd;
	if (write(local, &action, sizeof(action)) != sizeof(action) ||
	    write(remote, &val, 8) != 8 || read(local, &val, 8) != 8)
		return -1;
	if (mailbox_register_callback(0x0, on_message, description) != 0)
		return -1;
	return mailbox_send_message(1, val) != 0 ||
		mailbox_unregister_callback(0x0) != 0;
}
LISTING
for std in c99 gnu17; do
	compiles "${CC:-cc}" -x c -std=$std
done
compiles c++ -x c++ -std=c++11

# A name that is declared twice, with different types, is an error.
for header in gsas.h atomic.h unimem/unim_dma.h unimem/mailbox.h; do
	what="the synopsis of $header"
	prototypes "$header" man/gsas*.3 man/unim*.3 man/mailbox.3 \
		>"$tmp/$header.man"
	{
		echo "#define GSAS_ATOMIC_FUNCTIONS"
		echo "#include <$header>"
		cat "$tmp/$header.man"
	} >"$tmp/x"
	compiles "${CC:-cc}" -x c -std=c99
done
{
	exported gsas/gsas.h GSAS_API
	exported gsas/atomic.h GSAS_ATOMIC_API
	exported rdma/unimem/unim_dma.h UNIM_API
	exported mailbox/unimem/mailbox.h MAILBOX_API
} >"$tmp/code"
[ "$(wc -l <"$tmp/code")" -ge 80 ] || {
	echo "only $(wc -l <"$tmp/code") functions found in the headers"
	failed=1
}
LC_ALL=C sort -o "$tmp/code" "$tmp/code"
sed 's/(.*//; s/.*[ *]//' "$tmp/gsas.h.man" "$tmp/atomic.h.man" \
	"$tmp/unimem/unim_dma.h.man" "$tmp/unimem/mailbox.h.man" |
	LC_ALL=C sort >"$tmp/man"
for f in man/gsas*.3 man/unim*.3 man/mailbox.3; do
	sed -n '/^\.Sh NAME/,/^\.Sh SYNOPSIS/s/^\.Nm \([^ ]*\).*/\1/p' "$f"
done | LC_ALL=C sort >"$tmp/names"
for list in man names; do
	diff "$tmp/code" "$tmp/$list" >"$tmp/diff" || {
		echo "functions of the headers (<), and of the manual's $list:"
		cat "$tmp/diff"
		failed=1
	}
done

for what in man/*.3; do
	sed -n '/^\.Sh EXAMPLES/,/^\.Ed/p' "$what" |
		sed '1,/^\.Bd -literal/d; /^\.Ed/d; s/\\e/\\/g' >"$tmp/x"
	[ -s "$tmp/x" ] || { echo "$what has no example"; failed=1; }
	compiles "${CC:-cc}" -x c
done
[ -n "$tried" ] || skip "there is no compiler"
# a line that show_skips (scripts/count.sh) counts
[ -z "$missing" ] || echo "skip without_a_compiler ($missing)"
exit $failed
