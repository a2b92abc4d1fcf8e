/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the firewall costs a process that is no guest: UDP over loopback, in three network
 *namespaces, without a table, with one rule written by hand (`meta skuid @set drop`, the same uids)
 *and with the whole table. The three take turns in short rounds, in an order that changes, and each
 *round is compared with itself: what else the machine does meets all of them. Time is the sender's
 *CPU time, which includes the packet's way to the receiver's queue.
 *
 *	udp_cost [ROUNDS]
 *
 * Prints "name value" lines. Needs root and nft(8); changes nothing of the host but for a cgroup
 *that is removed at the end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "nft/firewall.h"

#define FIRST_UID   90000
#define UIDS	    4096
#define PROFILES    64
#define ENTRIES	    10000
#define ROUNDS	    300
#define ROUNDS_MAX  100000
#define PACKETS	    1024 /* of one round */
#define QUEUED	    32	 /* before they are taken out again */
#define PAYLOAD	    64
#define FAR_AWAY_ID (UINT64_C(1) << 40) /* no cgroup has it */

enum { NONE, BY_HAND, OURS, N_TABLES };
static const char *const names[N_TABLES] = { "none", "by_hand", "ours" };

struct pair {
	int sender, receiver;
};

static _Noreturn void stop(const char *what)
{
	fprintf(stderr, "udp_cost: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- a cgroup at the depth of a service's ---- */

static char slice[64], service[80];

static void remove_cgroups(void)
{
	rmdir(service);
	rmdir(slice);
}

static uint64_t enter_cgroup(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char procs[112];
	struct statfs fs;
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(mounts) && !slice[0]; i++)
		if (statfs(mounts[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			snprintf(slice, sizeof(slice), "%s/hgcost-XXXXXX", mounts[i]);
	if (!slice[0] || !mkdtemp(slice))
		stop("no cgroup v2 to be in");
	snprintf(service, sizeof(service), "%s/service", slice);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", service);
	if (mkdir(service, 0755) < 0 || write_file_at(AT_FDCWD, procs, "0") < 0 ||
	    stat(slice, &st) < 0)
		stop(service);
	return st.st_ino;
}

/* The sockets keep the cgroup that they were made in; the process goes back to the root. */
static void leave_cgroup(void)
{
	char procs[96];

	snprintf(procs, sizeof(procs), "%s/../cgroup.procs", slice);
	if (write_file_at(AT_FDCWD, procs, "0") < 0)
		stop(procs);
}

/* ---- a namespace ---- */

static void enter_namespace(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	_cleanup_close_ int fd = -1;

	if (unshare(CLONE_NEWNET) < 0)
		stop("a network namespace");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		stop("lo");
}

static struct pair make_pair(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	socklen_t len = sizeof(to);
	struct pair p = { socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
			  socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) };

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(p.receiver, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    getsockname(p.receiver, (struct sockaddr *)&to, &len) < 0 ||
	    connect(p.sender, (struct sockaddr *)&to, sizeof(to)) < 0)
		stop("a pair of sockets");
	return p;
}

/* ---- the tables ---- */

static void load_by_hand(void)
{
	FILE *f = popen("nft -f -", "we");

	if (!f)
		stop("nft");
	fprintf(f, "table inet by_hand {\n\tset guests {\n\t\ttype uid\n\t\telements = { %d",
		FIRST_UID);
	for (int i = 1; i < UIDS; i++)
		fprintf(f, ", %d", FIRST_UID + i);
	fputs(" }\n\t}\n\tchain output {\n\t\ttype filter hook output priority 0; policy accept;\n"
	      "\t\tmeta skuid @guests drop\n\t}\n}\n",
	      f);
	if (pclose(f) != 0)
		stop("nft -f");
}

static struct allow *make_entries(void)
{
	struct allow *all = calloc(ENTRIES, sizeof(*all));
	struct error e = ERROR_NULL;
	char line[ALLOW_TEXT_MAX];

	for (int i = 0; all && i < ENTRIES; i++) {
		snprintf(line, sizeof(line), i % 2 ? "tcp [2001:db8:%x::]:%d" : "udp 10.%d.%d.1:53",
			 i % 2 ? i : i >> 8, i % 2 ? 443 : i & 255);
		if (allow_parse(line, &all[i], &e) < 0) {
			fprintf(stderr, "udp_cost: %s\n", e.text);
			exit(1);
		}
	}
	return all;
}

static struct firewall *load_ours(uint64_t our_slice)
{
	static struct firewall_profile profiles[PROFILES];
	struct firewall_policy policy = {
		.first_uid = FIRST_UID,
		.uid_count = UIDS,
		.slice_id = FAR_AWAY_ID + our_slice,
		.slice_level = 1,
		.profile_level = 2,
		.scope_level = 3,
		.profiles = profiles,
		.n_profiles = PROFILES,
	};
	_cleanup_free_ struct allow *all = make_entries();
	struct firewall *fw = NULL;
	struct error e = ERROR_NULL;

	for (size_t i = 0, each = ENTRIES / PROFILES; all && i < PROFILES; i++) {
		snprintf(profiles[i].name, sizeof(profiles[i].name), "p%zu", i);
		profiles[i].slice_id = policy.slice_id + i + 1;
		profiles[i].entries = all + i * each;
		profiles[i].n_entries = i + 1 < PROFILES ? each : ENTRIES - i * each;
	}
	if (!all || firewall_open(&fw, &e) < 0 || firewall_load(fw, &policy, false, &e) < 0) {
		fprintf(stderr, "udp_cost: %s\n", e.text);
		exit(1);
	}
	return fw;
}

/* ---- rounds ---- */

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Packets per second of the sending; taking them out again is not counted. */
static double one_round(const struct pair *p)
{
	char data[PAYLOAD] = { 0 };
	double spent = 0;

	for (int i = 0; i < PACKETS / QUEUED; i++) {
		double begin = cpu_seconds();

		for (int j = 0; j < QUEUED; j++)
			if (send(p->sender, data, sizeof(data), 0) != sizeof(data))
				stop("send");
		spent += cpu_seconds() - begin;
		for (int j = 0; j < QUEUED; j++)
			if (recv(p->receiver, data, sizeof(data), MSG_DONTWAIT) != sizeof(data))
				stop("recv");
	}
	return PACKETS / spent;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const char *name, double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
	printf("%s %.4f\n%s_p10 %.4f\n%s_p90 %.4f\n", name, values[n / 2], name, values[n / 10],
	       name, values[n - 1 - n / 10]);
}

static void measure(const struct pair pairs[N_TABLES], size_t rounds)
{
	double *rate[N_TABLES], *against_none, *against_hand;
	char name[64];

	against_none = calloc(2 * rounds, sizeof(double));
	for (int t = 0; t < N_TABLES; t++)
		rate[t] = calloc(rounds, sizeof(double));
	if (!against_none || !rate[NONE] || !rate[BY_HAND] || !rate[OURS])
		stop("memory");
	against_hand = against_none + rounds;
	for (size_t i = 0; i < rounds; i++) {
		for (size_t t = 0; t < N_TABLES; t++) {
			size_t which = (t + i) % N_TABLES;

			rate[which][i] = one_round(&pairs[which]);
		}
		against_none[i] = rate[OURS][i] / rate[NONE][i];
		against_hand[i] = rate[OURS][i] / rate[BY_HAND][i];
	}
	for (int t = 0; t < N_TABLES; t++) {
		snprintf(name, sizeof(name), "packets_per_second_%s", names[t]);
		print(name, rate[t], rounds);
		free(rate[t]);
	}
	print("ours_to_none", against_none, rounds);
	print("ours_to_by_hand", against_hand, rounds);
	free(against_none);
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS;
	struct pair pairs[N_TABLES];
	struct firewall *fw = NULL;
	uint64_t id;

	if (argc > 2 || rounds == 0 || rounds > ROUNDS_MAX) {
		fputs("usage: udp_cost [ROUNDS]\n", stderr);
		return 2;
	}
	atexit(remove_cgroups);
	id = enter_cgroup();
	for (int t = 0; t < N_TABLES; t++) {
		enter_namespace();
		if (t == BY_HAND)
			load_by_hand();
		if (t == OURS)
			fw = load_ours(id);
		pairs[t] = make_pair();
	}
	leave_cgroup();
	measure(pairs, rounds);
	firewall_free(fw);
	for (int t = 0; t < N_TABLES; t++) {
		close(pairs[t].sender);
		close(pairs[t].receiver);
	}
	return 0;
}
