/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_av.c - address vectors: indices, names, duplicates, growth.
 *
 * Removal is in test_av_remove.c.
 */
#include "lib/ep_av.h"

static struct fid_av *open_av(struct ep *e, size_t count)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .count = count };
	struct fid_av *av;

	assert_int_equal(fi_av_open(e->domain, &attr, &av, NULL), 0);
	return av;
}

/* ---- Indices --------------------------------------------------------- */

static void test_trap9_index_is_the_order_of_insertion(void **state)
{
	static const enum fi_av_type types[] = {
		FI_AV_TABLE, FI_AV_MAP, FI_AV_UNSPEC,
	};
	struct hal_addr a[300];
	fi_addr_t addr[300];

	for (int t = 0; t < 3; t++) {
		struct ep_want want = { .av_type = types[t] };
		struct ep *e = ep_open(&want);
		uint32_t at = 0;

		for (uint32_t i = 0; i < 300; i++)
			a[i] = made_up(i);
		for (uint32_t n = 1; at + n <= 300; at += n, n++) {
			memset(addr, 0xff, sizeof(addr));
			assert_int_equal(fi_av_insert(e->av, &a[at], n, addr,
						      0, NULL), (int)n);
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(addr[i], at + i);
		}
		/* the indices need not be returned */
		assert_int_equal(fi_av_insert(e->av, &a[0], 1, NULL, 0, NULL),
				 1);
		ep_close(e);
	}
}

static void test_growth_beyond_count(void **state)
{
	enum { N = 20000 };
	struct ep *e = ep_open(NULL);
	struct fid_av *av = open_av(e, 4);
	struct hal_addr a, got;
	fi_addr_t addr;
	size_t len;

	for (uint32_t i = 0; i < N; i++) {
		a = made_up(i);
		assert_int_equal(fi_av_insert(av, &a, 1, &addr, 0, NULL), 1);
		assert_int_equal(addr, i);
	}
	for (uint32_t i = 0; i < N; i++) {
		a = made_up(i);
		len = sizeof(got);
		assert_int_equal(fi_av_lookup(av, i, &got, &len), 0);
		assert_memory_equal(&got, &a, sizeof(a));
	}
	assert_int_equal(fi_close(&av->fid), 0);
}

/* One insertion of several addresses, one of which is not valid. */
static void test_bad_addresses_among_good_ones(void **state)
{
	struct ep *e = ep_open(NULL);
	struct hal_addr a[5];
	fi_addr_t addr[5];
	int errs[5];

	for (int i = 0; i < 5; i++)
		a[i] = made_up(i);
	a[1].version = 77;
	a[3].iface = 0;
	assert_int_equal(fi_av_insert(e->av, a, 5, addr, FI_SYNC_ERR, errs),
			 3);
	for (int i = 0, next = 0; i < 5; i++) {
		bool good = i != 1 && i != 3;

		assert_int_equal(addr[i] == FI_ADDR_NOTAVAIL, !good);
		assert_int_equal(errs[i], good ? 0 : FI_EINVAL);
		if (good)
			assert_int_equal(addr[i], next++);
	}
	assert_int_equal(fi_av_insert(e->av, a, 1, addr, FI_EVENT, NULL),
			 -FI_EBADFLAGS);
	a[0].reserved = 1;
	assert_int_equal(fi_av_insert(e->av, a, 1, addr, 0, NULL), 0);
	assert_int_equal(addr[0], FI_ADDR_NOTAVAIL);
}

/* An address of a process with FI_UNIMEM_NET, which this process has not. */
static void test_address_with_a_host(void **state)
{
	struct ep *e = ep_open(NULL);
	/* nobody knows what stands where the next address would begin */
	struct hal_addr a[3] = { made_up(1), made_up(2), made_up(3) };
	fi_addr_t addr[3] = { 0 };
	int err[3] = { 0 };

	a[0].version = HAL_ADDR_HOST_VERSION;
	assert_int_equal(fi_av_insert(e->av, a, 3, addr, FI_SYNC_ERR, err), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(addr[i], FI_ADDR_NOTAVAIL);
		assert_int_equal(err[i], FI_EINVAL);
	}
}

/* ---- Names ----------------------------------------------------------- */

static void test_trap9_lookup_is_byte_identical(void **state)
{
	struct ep *e = ep_open(NULL);
	struct hal_addr a = name_of(e), got;
	fi_addr_t addr = ep_insert(e, e);
	size_t len = sizeof(got);
	char part[sizeof(a) + 8];

	memset(&got, 0x55, sizeof(got));
	assert_int_equal(fi_av_lookup(e->av, addr, &got, &len), 0);
	assert_int_equal(len, sizeof(a));
	assert_memory_equal(&got, &a, sizeof(a));
	/* a buffer that is too small gets as much as fits, and the full
	 * length */
	memset(part, 0x55, sizeof(part));
	len = 0;
	assert_int_equal(fi_av_lookup(e->av, addr, NULL, &len), 0);
	assert_int_equal(len, sizeof(a));
	len = 5;
	assert_int_equal(fi_av_lookup(e->av, addr, part, &len), 0);
	assert_int_equal(len, sizeof(a));
	assert_memory_equal(part, &a, 5);
	assert_int_equal(part[5], 0x55);
	assert_int_equal(fi_av_lookup(e->av, addr + 1, &got, &len),
			 -FI_EINVAL);
	assert_int_equal(fi_av_lookup(e->av, FI_ADDR_NOTAVAIL, &got, &len),
			 -FI_EINVAL);
}

static void test_straddr(void **state)
{
	struct ep *e = ep_open(NULL);
	struct hal_addr a = name_of(e);
	char want[80], text[80];
	size_t len = sizeof(text), room;

	snprintf(want, sizeof(want), "unimem://%u:%u", a.board, a.iface);
	assert_ptr_equal(fi_av_straddr(e->av, &a, text, &len), text);
	assert_memory_equal(text, want, strlen(want));
	assert_int_equal(len, strlen(text) + 1);
	/* never writes beyond the given length, always terminates */
	for (room = 1; room < len; room++) {
		char small[80];
		size_t n = room;

		memset(small, 'x', sizeof(small));
		fi_av_straddr(e->av, &a, small, &n);
		assert_int_equal(n, len);
		assert_int_equal(strnlen(small, room), room - 1);
		assert_int_equal(small[room], 'x');
	}
}

/* The text of fi_av_straddr() is a node name that fi_getinfo() resolves to the
 * same address. */
static void test_straddr_parses_back(void **state)
{
	struct ep *e = ep_open(NULL);
	struct hal_addr a[5] = {
		name_of(e), name_of(e), made_up(7), made_up(65534),
		{ .version = HAL_ADDR_VERSION, .board = 65535,
		  .iface = 65535, .uid = UINT32_MAX, .nonce = UINT64_MAX },
	};

	a[1].nonce = HAL_ADDR_ANY;
	a[3].nonce = HAL_ADDR_ANY;
	for (int i = 0; i < 5; i++) {
		char text[80], again[80];
		size_t len = sizeof(text), room = sizeof(struct hal_addr);
		struct hal_addr got;
		fi_addr_t addr;

		fi_av_straddr(e->av, &a[i], text, &len);
		assert_int_equal(fi_av_insertsvc(e->av, text, NULL, &addr, 0,
						 NULL), 1);
		assert_int_equal(fi_av_lookup(e->av, addr, &got, &room), 0);
		assert_memory_equal(&got, &a[i], sizeof(got));
		len = sizeof(again);
		fi_av_straddr(e->av, &got, again, &len);
		assert_string_equal(text, again);
	}
}

/* unimem://board:interface is the address of any holder of that interface. */
static void test_insertsvc(void **state)
{
	struct ep *a = ep_open(NULL), *b = ep_open(NULL);
	struct hal_addr name = name_of(b), got;
	fi_addr_t typed, from, exact;
	size_t len = sizeof(got);
	char node[64], service[16];

	snprintf(node, sizeof(node), "unimem://%u:%u", name.board, name.iface);
	assert_int_equal(fi_av_insertsvc(a->av, node, NULL, &typed, 0, NULL),
			 1);
	assert_int_equal(typed, 0);
	assert_int_equal(fi_av_lookup(a->av, typed, &got, &len), 0);
	assert_int_equal(got.board, name.board);
	assert_int_equal(got.iface, name.iface);
	assert_int_equal(got.nonce, HAL_ADDR_ANY);
	from = ep_insert(b, a);
	assert_int_equal(source_seen(a, typed, b), from);
	/* messages from that peer have this index */
	assert_int_equal(source_seen(b, from, a), typed);
	/* its full address is another index of the same peer */
	exact = ep_insert(a, b);
	assert_int_equal(exact, 1);
	assert_int_equal(source_seen(a, exact, b), from);
	/* the board as node, the interface as service */
	snprintf(node, sizeof(node), "unimem://%u", name.board);
	snprintf(service, sizeof(service), "%u", name.iface);
	assert_int_equal(fi_av_insertsvc(a->av, node, service, &typed, FI_MORE,
					 NULL), 1);
	assert_int_equal(typed, 2);
	assert_int_equal(source_seen(a, typed, b), from);
}

static void test_insertsvc_of_nonsense(void **state)
{
	static const char *const bad[] = {
		"", "unimem", "unimem://", "unimem://0", "unimem://0:",
		"unimem://0:0", "unimem://0:1x", "unimem://65536:1",
		"unimem://0:65536", "unimem://a:b", "localhost", "192.0.2.1",
		"unimem://0:1/", "unimem://0:99999999999999999999",
		"unimem://-1:1", "unimem:// 0:1", "unimem://+0:1",
		"unimem://0:4294967297", "unimem:///0:1", "UNIMEM://0:1",
		"unimem://0:1/1", "unimem://0:1/00000000000000000",
		"unimem://0:1/0000000000000000", "unimem://0:1?uid=",
		"unimem://0:1/00000000000000AB", "unimem://0:1?uid=x",
		"unimem://0:1/000000000000000g", "unimem://0:1 ",
		"unimem://0:1?uid=4294967296", "unimem://0:1?gid=1",
		"unimem://0:1/00000000000000ab?uid=1?uid=1",
	};
	static const char *const pair[][2] = {
		{ "unimem://0:0", "1" }, { "unimem://0", "" },
		{ "unimem://0", "0" }, { "unimem://0", "65536" },
		{ "unimem://0", "1/00000000000000ab" }, { "0", "x" },
		{ "unimem://", "1" }, { "unimem://0:", "1" },
		{ "unimem://65536", "1" }, { "localhost", "0" },
		{ "unimem://0", "ssh" }, { "unimem://0", "+1" },
		{ "unimem://0", "1?uid=1" },
	};
	struct ep *e = ep_open(NULL);
	fi_addr_t addr;
	int err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		addr = 0;
		err = 0;
		if (fi_av_insertsvc(e->av, bad[i], NULL, &addr, FI_SYNC_ERR,
				    &err) > 0 || addr != FI_ADDR_NOTAVAIL ||
		    err != FI_EINVAL)
			unit_fail("accepted: %s", bad[i]);
	}
	for (size_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++)
		if (fi_av_insertsvc(e->av, pair[i][0], pair[i][1], &addr, 0,
				    NULL) > 0)
			unit_fail("accepted: %s %s", pair[i][0], pair[i][1]);
	assert_true(fi_av_insertsvc(e->av, NULL, NULL, &addr, 0, NULL) < 0);
	assert_true(fi_av_insertsvc(e->av, NULL, "5", &addr, 0, NULL) < 0);
	assert_int_equal(fi_av_insertsvc(e->av, "unimem://0:1", NULL, &addr,
					 FI_EVENT, NULL), -FI_EBADFLAGS);
	assert_int_equal(ep_insert(e, e), 0);
}

/* A host name and a number: an interface of the local board. A node that
 * already names an interface accepts any service. */
static void test_insertsvc_of_a_host(void **state)
{
	char text[64], service[16];
	const char *const node[] = { "localhost", "127.0.0.1", text };
	struct ep *a = ep_open(NULL), *b = ep_open(NULL);
	struct hal_addr name = name_of(b), got;
	fi_addr_t addr, none[2], from = ep_insert(b, a);
	size_t len = sizeof(got);

	snprintf(service, sizeof(service), "%u", name.iface);
	snprintf(text, sizeof(text), "unimem://%u:%u", name.board, name.iface);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_av_insertsvc(a->av, node[i], service,
						 &addr, 0, NULL), 1);
		assert_int_equal(fi_av_lookup(a->av, addr, &got, &len), 0);
		assert_int_equal(got.board, name.board);
		assert_int_equal(got.iface, name.iface);
		assert_int_equal(got.reserved, 0);
		assert_int_equal(source_seen(a, addr, b), from);
	}
	/* host names are not counted up, interfaces are */
	assert_true(fi_av_insertsym(a->av, "localhost", 2, "7", 1, none, 0,
				    NULL) <= 0);
	assert_int_equal(fi_av_insertsym(a->av, "localhost", 1, "7", 3, NULL,
					 0, NULL), 3);
}

/* Boards in turn, and on each board its interfaces in turn. */
static void test_insertsym(void **state)
{
	enum { BOARDS = 3, IFS = 4, N = BOARDS * IFS };
	struct ep *e = ep_open(NULL);
	fi_addr_t first = ep_insert(e, e), addr[N];
	int errs[N];

	for (int form = 0; form < 2; form++) {
		memset(addr, 0xff, sizeof(addr));
		memset(errs, 0xff, sizeof(errs));
		assert_int_equal(fi_av_insertsym(e->av, form == 0 ?
				"unimem://5" : "unimem://5:60", BOARDS,
				form == 0 ? "60" : NULL, IFS, addr,
				FI_SYNC_ERR, errs), N);
		for (uint32_t i = 0; i < N; i++) {
			struct hal_addr a;
			size_t len = sizeof(a);

			assert_int_equal(addr[i], first + 1 + form * N + i);
			assert_int_equal(errs[i], 0);
			assert_int_equal(fi_av_lookup(e->av, addr[i], &a,
						      &len), 0);
			assert_int_equal(a.board, 5 + i / IFS);
			assert_int_equal(a.iface, 60 + i % IFS);
			assert_int_equal(a.nonce, HAL_ADDR_ANY);
		}
	}
	/* nothing to insert, no array of indices */
	assert_int_equal(fi_av_insertsym(e->av, "unimem://5:1", 0, NULL, 4,
					 addr, 0, NULL), 0);
	assert_int_equal(fi_av_insertsym(e->av, "unimem://5:1", 4, NULL, 0,
					 addr, 0, NULL), 0);
	assert_int_equal(fi_av_insertsym(e->av, "unimem://5:1", 2, NULL, 2,
					 NULL, 0, NULL), 4);
	assert_int_equal(ep_insert(e, e), first + 1 + 2 * N + 4);
}

/* Service numbers beyond the board's interfaces begin again at 1, also those
 * that are counted up to. */
static void test_insertsym_of_ports(void **state)
{
	static const char *const from[] = { "65535", "131070", "4294967295" };
	struct ep *e = ep_open(NULL);
	struct hal_addr got[2];

	for (int i = 0; i < 3; i++) {
		fi_addr_t addr[2];

		assert_int_equal(fi_av_insertsym(e->av, "localhost", 1,
						 from[i], 2 - i / 2, addr, 0,
						 NULL), 2 - i / 2);
		for (int k = 0; k < 2 - i / 2; k++) {
			size_t len = sizeof(got[k]);

			assert_int_equal(fi_av_lookup(e->av, addr[k], &got[k],
						      &len), 0);
			assert_int_equal(got[k].board, got[0].board);
		}
		if (i < 2 && got[1].iface != got[0].iface + 1)
			assert_int_equal(got[1].iface, 1);
	}
}

/* A range that exceeds the number of boards: the part beyond is not
 * inserted. */
static void test_insertsym_over_the_end(void **state)
{
	struct ep *e = ep_open(NULL);
	fi_addr_t addr[6];
	int errs[6];

	assert_int_equal(fi_av_insertsym(e->av, "unimem://65534", 3, "65535",
					 2, addr, FI_SYNC_ERR, errs), 2);
	for (int i = 0, next = 0; i < 6; i++) {
		bool good = i == 0 || i == 2;

		assert_int_equal(addr[i], good ? (fi_addr_t)next++ :
				 FI_ADDR_NOTAVAIL);
		assert_int_equal(errs[i], good ? 0 : FI_EINVAL);
	}
	assert_int_equal(fi_av_insertsym(e->av, "unimem://0", SIZE_MAX, "1",
					 SIZE_MAX, addr, 0, NULL), -FI_EINVAL);
	memset(addr, 0, sizeof(addr));
	assert_true(fi_av_insertsym(e->av, "unimem://x", 2, "1", 3, addr,
				    FI_SYNC_ERR, errs) <= 0);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(addr[i], FI_ADDR_NOTAVAIL);
		assert_int_equal(errs[i], FI_EINVAL);
	}
	/* an address with a nonce is a single address */
	assert_true(fi_av_insertsym(e->av, "unimem://0:1/00000000000000aa", 1,
				    NULL, 2, addr, 0, NULL) <= 0);
	assert_int_equal(fi_av_insertsym(e->av, "unimem://0:1/00000000000000aa",
					 1, NULL, 1, addr, 0, NULL), 1);
	assert_int_equal(addr[0], 2);
}

/* ---- Duplicates ------------------------------------------------------ */

static void test_duplicates_are_one_peer(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	fi_addr_t dup = ep_insert(p.b, p.a), dup2 = ep_insert(p.a, p.b);
	char in[2], out[2] = { 1, 2 };

	assert_int_not_equal(dup, p.ba);
	/* completions report the first index */
	assert_int_equal(source_seen(p.a, p.ab, p.b), p.ba);
	assert_int_equal(source_seen(p.a, dup2, p.b), p.ba);
	/* receives directed at either index match its messages, in order */
	EP_OK(fi_recv(p.b->ep, &in[0], 1, NULL, dup, &in[0]));
	EP_OK(fi_recv(p.b->ep, &in[1], 1, NULL, p.ba, &in[1]));
	EP_OK(fi_inject(p.a->ep, &out[0], 1, dup2));
	EP_OK(fi_inject(p.a->ep, &out[1], 1, p.ab));
	assert_int_equal(ep_received(p.b, &in[0]).src, p.ba);
	assert_int_equal(ep_received(p.b, &in[1]).src, p.ba);
	assert_memory_equal(in, out, 2);
}

/* ---- Shared vectors -------------------------------------------------- */

static void test_trap4_named_vectors_are_refused(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_READ,
				   .name = "FI_NAMED_AV_0\n" };
	struct fid_av *av = NULL;

	assert_true(fi_av_open(e->domain, &attr, &av, NULL) < 0);
	assert_null(av);
	assert_null(attr.map_addr);
	attr.flags = 0;
	assert_true(fi_av_open(e->domain, &attr, &av, NULL) < 0);
	attr.name = NULL;
	attr.type = 9;
	assert_int_equal(fi_av_open(e->domain, &attr, &av, NULL), -FI_EINVAL);
	attr.type = FI_AV_TABLE;
	attr.flags = FI_READ;
	assert_true(fi_av_open(e->domain, &attr, &av, NULL) < 0);
	attr.flags = FI_EVENT;
	assert_true(fi_av_open(e->domain, &attr, &av, NULL) < 0);
	assert_null(av);
}

/* Two endpoints may share one vector; its indices are the same for both. */
static void test_one_vector_for_two_endpoints(void **state)
{
	struct ep *host = ep_open(NULL), *far = ep_open(NULL);
	struct ep_want want = { .with = host };
	struct ep *guest = ep_open(&want);
	fi_addr_t far_at = ep_insert(host, far);
	fi_addr_t to_host = ep_insert(far, host);
	fi_addr_t to_guest = ep_insert(far, guest);

	assert_int_equal(source_seen(far, to_host, host), far_at);
	assert_int_equal(source_seen(far, to_guest, guest), far_at);
	assert_int_equal(source_seen(host, far_at, far), to_host);
	assert_int_equal(source_seen(guest, far_at, far), to_guest);
	assert_int_equal(fi_av_remove(host->av, &far_at, 1, 0), 0);
	assert_int_equal(source_seen(far, to_host, host), FI_ADDR_NOTAVAIL);
	assert_int_equal(source_seen(far, to_guest, guest), FI_ADDR_NOTAVAIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EP_TEST(test_trap9_index_is_the_order_of_insertion),
		EP_TEST(test_growth_beyond_count),
		EP_TEST(test_bad_addresses_among_good_ones),
		EP_TEST(test_address_with_a_host),
		EP_TEST(test_trap9_lookup_is_byte_identical),
		EP_TEST(test_straddr),
		EP_TEST(test_straddr_parses_back),
		EP_TEST(test_insertsvc),
		EP_TEST(test_insertsvc_of_nonsense),
		EP_TEST(test_insertsvc_of_a_host),
		EP_TEST(test_insertsym),
		EP_TEST(test_insertsym_of_ports),
		EP_TEST(test_insertsym_over_the_end),
		EP_TEST(test_duplicates_are_one_peer),
		EP_TEST(test_trap4_named_vectors_are_refused),
		EP_TEST(test_one_vector_for_two_endpoints),
	};

	/* as one of many ranks: the search for a free interface starts where it
	 * did before */
	setenv("MPI_LOCALRANKID", "0", 1);
	setenv("MPI_LOCALNRANKS", "65535", 1);
	return unit_run(tests);
}
