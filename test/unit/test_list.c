/* SPDX-License-Identifier: BSD-2-Clause */
/* test_list.c - the intrusive list: order, removal, and popping while a loop
 * walks the list. */
#include "lib/unit.h"
#include "util/unm_list.h"

struct item {
	int val;
	struct unm_list link;
};

static void fill(struct unm_list *head, struct item *it, int n)
{
	unm_list_init(head);
	for (int i = 0; i < n; i++) {
		it[i].val = i;
		unm_list_append(head, &it[i].link);
	}
}

static void test_appends_keep_order(void **state)
{
	struct unm_list head;
	struct item it[5];
	int next = 0;

	fill(&head, it, 5);
	assert_false(unm_list_empty(&head));
	unm_list_for_each(pos, &head)
		assert_int_equal(unm_container(pos, struct item, link)->val,
				 next++);
	assert_int_equal(next, 5);
	/* backwards as well */
	for (struct unm_list *pos = head.prev; pos != &head; pos = pos->prev)
		assert_int_equal(unm_container(pos, struct item, link)->val,
				 --next);
	assert_int_equal(next, 0);
}

static void test_empty_list(void **state)
{
	struct unm_list head;

	unm_list_init(&head);
	assert_true(unm_list_empty(&head));
	assert_null(unm_list_pop(&head));
	unm_list_for_each(pos, &head)
		fail();
	unm_list_for_each_safe(pos, tmp, &head)
		fail();
}

static void test_remove_first_middle_last(void **state)
{
	static const int left[] = { 1, 3 };
	struct unm_list head;
	struct item it[5];
	int n = 0;

	fill(&head, it, 5);
	unm_list_remove(&it[0].link);
	unm_list_remove(&it[2].link);
	unm_list_remove(&it[4].link);
	unm_list_for_each(pos, &head)
		assert_int_equal(unm_container(pos, struct item, link)->val,
				 left[n++]);
	assert_int_equal(n, 2);
}

static void test_second_removal_does_nothing(void **state)
{
	struct unm_list head;
	struct item it[3];
	int n = 0;

	fill(&head, it, 3);
	unm_list_remove(&it[1].link);
	assert_true(unm_list_empty(&it[1].link));
	unm_list_remove(&it[1].link);
	unm_list_for_each(pos, &head)
		n++;
	assert_int_equal(n, 2);
	/* and it can be appended again */
	unm_list_append(&head, &it[1].link);
	assert_ptr_equal(head.prev, &it[1].link);
}

static void test_pop_is_fifo(void **state)
{
	struct unm_list head, *node;
	struct item it[4];
	int next = 0;

	fill(&head, it, 4);
	while ((node = unm_list_pop(&head)) != NULL) {
		assert_int_equal(unm_container(node, struct item, link)->val,
				 next++);
		assert_true(unm_list_empty(node));
	}
	assert_int_equal(next, 4);
	assert_true(unm_list_empty(&head));
}

static void test_safe_walk_survives_removal(void **state)
{
	struct unm_list head;
	struct item it[6];
	int seen = 0, left = 0;

	fill(&head, it, 6);
	unm_list_for_each_safe(pos, tmp, &head) {
		assert_int_equal(unm_container(pos, struct item, link)->val,
				 seen++);
		if (seen % 2 == 0)
			unm_list_remove(pos);
	}
	assert_int_equal(seen, 6);
	unm_list_for_each(pos, &head)
		left++;
	assert_int_equal(left, 3);
}

UNIT_MAIN(
	cmocka_unit_test(test_appends_keep_order),
	cmocka_unit_test(test_empty_list),
	cmocka_unit_test(test_remove_first_middle_last),
	cmocka_unit_test(test_second_removal_does_nothing),
	cmocka_unit_test(test_pop_is_fifo),
	cmocka_unit_test(test_safe_walk_survives_removal),
)
