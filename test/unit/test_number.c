/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_number.c - interfaces that are opened by number, and endpoints that find
 * each other by number, like programs with options for host and port: no
 * address is exchanged in another way.
 */
#include "lib/ep_av.h"

/* A number that no other test of this machine uses. */
static const char *number(void)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", 20000 + (int)getpid() % 40000);
	return text;
}

static struct ep *open_at(const char *service)
{
	struct ep_want want = { .service = service };

	return ep_open(&want);
}

/* An interface has one holder at a time. */
static void test_taken_once(void **state)
{
	struct ep *a = open_at(number());
	struct hal_addr name = name_of(a);
	struct fi_info *info = NULL;
	struct unit_capture ear;
	struct fid_ep *ep;
	char text[256];

	assert_int_equal(name.iface, strtol(number(), NULL, 10));
	ear = unit_capture_begin();
	assert_int_equal(fi_endpoint(a->domain, a->info, &ep, NULL),
			 -FI_EADDRINUSE);
	assert_int_equal(unit_capture_end(&ear, text, sizeof(text)), 1);
	assert_non_null(strstr(text, number()));
	/* also with the provider's form of the address */
	snprintf(text, sizeof(text), "unimem://%u:%u", name.board, name.iface);
	assert_int_equal(ep_getinfo_at(text, "9228", FI_SOURCE, NULL, &info),
			 0);
	ear = unit_capture_begin();
	assert_int_equal(fi_endpoint(a->domain, info, &ep, NULL),
			 -FI_EADDRINUSE);
	unit_capture_end(&ear, text, sizeof(text));
	ep_close(a);
	a = ep_open(NULL);
	assert_int_equal(fi_endpoint(a->domain, info, &ep, NULL), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	fi_freeinfo(info);
}

/* A source address that an endpoint cannot have is refused, also when it is
 * opened. */
static void test_impossible_sources(void **state)
{
	struct ep *a = ep_open(NULL);
	struct hal_addr *src = a->info->src_addr;
	struct fid_ep *ep;

	*src = name_of(a);		/* a nonce cannot be chosen */
	assert_int_equal(fi_endpoint(a->domain, a->info, &ep, NULL),
			 -FI_EINVAL);
	src->nonce = HAL_ADDR_ANY;
	src->iface = 70000;
	assert_int_equal(fi_endpoint(a->domain, a->info, &ep, NULL),
			 -FI_EINVAL);
	a->info->src_addrlen = 3;
	assert_int_equal(fi_endpoint(a->domain, a->info, &ep, NULL),
			 -FI_EINVAL);
	a->info->src_addrlen = sizeof(*src);
}

/* The server opens its number, the client connects by host and number. */
static void test_meet_by_number(void **state)
{
	static const char *const node[] = { NULL, "localhost", "127.0.0.1" };

	for (int i = 0; i < 3; i++) {
		struct ep *server = open_at(number()), *client = ep_open(NULL);
		struct hal_addr name = name_of(client), sender;
		struct fi_info *info = NULL;
		fi_addr_t to, back;
		char in, out = 4;

		assert_int_equal(ep_getinfo_at(node[i], number(), 0, NULL,
					       &info), 0);
		assert_int_equal(fi_av_insert(client->av, info->dest_addr, 1,
					      &to, 0, NULL), 1);
		fi_freeinfo(info);
		EP_OK(fi_recv(server->ep, &sender, sizeof(sender), NULL,
			      FI_ADDR_UNSPEC, &sender));
		EP_OK(fi_inject(client->ep, &name, sizeof(name), to));
		ep_received(server, &sender);
		assert_int_equal(fi_av_insert(server->av, &sender, 1, &back, 0,
					      NULL), 1);
		EP_OK(fi_recv(client->ep, &in, 1, NULL, to, &in));
		EP_OK(fi_inject(server->ep, &out, 1, back));
		assert_int_equal(ep_received(client, &in).src, to);
		ep_close(client);
		ep_close(server);
	}
}

UNIT_MAIN(
	EP_TEST(test_taken_once),
	EP_TEST(test_impossible_sources),
	EP_TEST(test_meet_by_number),
)
