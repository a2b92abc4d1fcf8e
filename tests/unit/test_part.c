/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In which slice a scope comes to lie. */
#include "tests/unit/test.h"

#include "governor/daemon/part.h"
#include "governor/daemon/place.h"

#define UIDS 100 /* four parts of 32: one more than they fill */
#define PATH "/sys/fs/cgroup/harpe.slice/harpe-web.slice"

static void a_pool_needs_as_many_as_its_uids_fill(void **state)
{
	(void)state;
	assert_int_equal(part_count(1), 1);
	assert_int_equal(part_count(PART_SCOPES - 1), 1);
	assert_int_equal(part_count(PART_SCOPES), 2); /* one scope may still be going */
	assert_int_equal(part_count(256), 256 / PART_SCOPES + 1);
	assert_int_equal(part_count(PARTS_MAX * PART_SCOPES), PARTS_MAX);
	assert_int_equal(part_count(65536), PARTS_MAX);
	assert_int_equal(part_count(UINT32_MAX), PARTS_MAX);
}

static void the_first_with_room_is_taken(void **state)
{
	uint32_t n[3] = { 0 };

	(void)state;
	assert_int_equal(part_with_room(n, 3), 0);
	n[0] = PART_SCOPES - 1;
	assert_int_equal(part_with_room(n, 3), 0);
	n[0] = PART_SCOPES;
	assert_int_equal(part_with_room(n, 3), 1);
	assert_int_equal(part_with_room(n, 1), 0);
	n[1] = PART_SCOPES + 1;
	assert_int_equal(part_with_room(n, 3), 2);
	n[2] = 10 * PART_SCOPES; /* the last one takes them all */
	assert_int_equal(part_with_room(n, 3), 2);
	n[0]--;
	assert_int_equal(part_with_room(n, 3), 0);
}

static void parts_lie_below_the_profiles_slice(void **state)
{
	char unit[PART_UNIT_MAX], path[PATH_TEXT_MAX];
	char longest[PROFILE_NAME_MAX + 1] = { 0 };

	(void)state;
	assert_string_equal(part_unit("web", 0, unit), "harpe-web.slice");
	assert_string_equal(part_unit("web", 12, unit), "harpe-web-12.slice");
	part_path(PATH, "web", 0, path);
	assert_string_equal(path, PATH);
	part_path(PATH, "web", 3, path);
	assert_string_equal(path, PATH "/harpe-web-3.slice");
	memset(longest, 'x', PROFILE_NAME_MAX);
	assert_int_equal(strlen(part_unit(longest, PARTS_MAX - 1, unit)),
			 PROFILE_NAME_MAX + strlen("harpe--63.slice"));
}

struct house {
	struct config config;
	struct daemon daemon;
	struct profile_slice web, other;
	struct run runs[UIDS];
};

static int set_up(void **state)
{
	struct house *h = calloc(1, sizeof(*h));

	if (!h)
		return -1;
	h->config.uid_count = UIDS;
	h->daemon.config = &h->config;
	h->daemon.runs = &h->runs[0];
	for (size_t i = 0; i < UIDS; i++) {
		h->runs[i].d = &h->daemon;
		h->runs[i].slice = &h->web;
		h->runs[i].next = i + 1 < UIDS ? &h->runs[i + 1] : NULL;
	}
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void start(struct run *r)
{
	r->part = place_part(r);
	r->has_scope = true;
}

static void each_is_filled_before_the_next(void **state)
{
	struct house *h = *state;

	for (unsigned int i = 0; i < UIDS; i++) {
		start(&h->runs[i]);
		assert_int_equal(h->runs[i].part, i / PART_SCOPES);
	}
}

static void holes_are_filled_first(void **state)
{
	struct house *h = *state;

	for (size_t i = 0; i + 1 < UIDS; i++)
		start(&h->runs[i]);
	h->runs[PART_SCOPES].has_scope = false; /* of part 1 */
	assert_int_equal(place_part(&h->runs[UIDS - 1]), 1);
	h->runs[0].has_scope = false;
	assert_int_equal(place_part(&h->runs[UIDS - 1]), 0);
}

static void others_scopes_do_not_count(void **state)
{
	struct house *h = *state;

	for (size_t i = 0; i < PART_SCOPES; i++) {
		h->runs[i].slice = &h->other;
		start(&h->runs[i]);
	}
	start(&h->runs[PART_SCOPES]);
	assert_int_equal(h->runs[PART_SCOPES].part, 0);
}

#define house_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_needs_as_many_as_its_uids_fill),
		cmocka_unit_test(the_first_with_room_is_taken),
		cmocka_unit_test(parts_lie_below_the_profiles_slice),
		house_test(each_is_filled_before_the_next),
		house_test(holes_are_filled_first),
		house_test(others_scopes_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
