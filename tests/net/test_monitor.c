/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who changed the ruleset, as the kernel tells. */
#include "tests/net/net.h"

#include <poll.h>
#include <unistd.h>

#include "nft/monitor.h"
#include "tests/net/golden.h"

static struct monitor_news news_of(int fd)
{
	struct monitor_news news = { 0 };

	monitor_read(fd, &news);
	return news;
}

static void names_the_process(void **state)
{
	struct error e = ERROR_NULL;
	struct pollfd p = { .fd = monitor_open(&e), .events = POLLIN };
	struct monitor_news news;

	(void)state;
	assert_ok(p.fd < 0 ? p.fd : 0, &e);
	assert_false(news_of(p.fd).changed);
	assert_int_equal(nft(NULL, 0, "add table inet other"), 0);
	assert_int_equal(poll(&p, 1, 5000), 1);
	news = news_of(p.fd);
	assert_true(news.changed);
	assert_false(news.lost);
	assert_int_equal(news.pid, 0); /* not our table */
	assert_false(news_of(p.fd).changed);
	assert_int_equal(nft(NULL, 0, "list ruleset"), 0); /* looking is no change */
	assert_false(news_of(p.fd).changed);
	close(p.fd);
}

/* The last one who changed our table, whoever commits what else around it. */
static void names_who_changed_ours(void **state)
{
	struct error e = ERROR_NULL;
	int fd = monitor_open(&e);
	struct monitor_news news;

	(void)state;
	assert_ok(fd < 0 ? fd : 0, &e);
	firewall_free(load_new(&golden_policy, false));
	assert_int_equal(nft(NULL, 0, "add table ip harpe_gov"), 0);
	assert_int_equal(news_of(fd).pid, getpid());
	assert_int_equal(nft(NULL, 0, "flush chain inet harpe_gov output"), 0);
	assert_int_equal(nft(NULL, 0, "add table inet other"), 0);
	news = news_of(fd);
	assert_string_equal(news.name, "nft");
	assert_true(news.pid > 0 && news.pid != (uint32_t)getpid());
	close(fd);
}

static void hears_its_own(void **state)
{
	struct error e = ERROR_NULL;
	int fd = monitor_open(&e);
	struct firewall *fw;

	(void)state;
	assert_ok(fd < 0 ? fd : 0, &e);
	fw = load_new(&golden_policy, true);
	assert_int_equal(news_of(fd).pid, getpid());
	firewall_free(fw);
	close(fd);
}

/* A flood that does not fit is told as such: look again. */
static void tells_of_losses(void **state)
{
	struct error e = ERROR_NULL;
	int fd = monitor_open(&e), size = 1;
	struct monitor_news news;

	(void)state;
	assert_ok(fd < 0 ? fd : 0, &e);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(nft(NULL, 0, "add table inet other%d", i), 0);
	news = news_of(fd);
	assert_true(news.changed);
	assert_true(news.lost);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		net_test(names_the_process),
		net_test(names_who_changed_ours),
		net_test(hears_its_own),
		net_test(tells_of_losses),
	};
	int r = net_possible();

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
