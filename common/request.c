/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/request.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "common/fd.h"
#include "common/text.h"

_Static_assert(GUEST_RLIMITS == RLIM_NLIMITS, "the wire format carries every resource limit");
_Static_assert(sizeof(rlim_t) == sizeof(uint64_t), "rlim_t is a wire format");

#define REQUEST(attr, kind, member) WIRE_FIELD(attr, kind, struct request, member)
#define VIEW_ITEM(i)                                                                               \
	REQUEST(32 + 2 * (i), WIRE_U32, view[i].kind),                                             \
		REQUEST(33 + 2 * (i), WIRE_STRING, view[i].text)

const struct wire_field request_fields[] = {
	REQUEST(1, WIRE_U64, limits.value[LIMIT_MEMORY]),
	REQUEST(2, WIRE_U64, limits.value[LIMIT_SWAP]),
	REQUEST(3, WIRE_U64, limits.value[LIMIT_CPU]),
	REQUEST(4, WIRE_U64, limits.value[LIMIT_PIDS]),
	REQUEST(5, WIRE_U64, limits.value[LIMIT_TIME]),
	REQUEST(6, WIRE_U64, limits.value[LIMIT_CPU_TIME]),
	REQUEST(7, WIRE_STRING, name),
	REQUEST(8, WIRE_STRING, command),
	REQUEST(9, WIRE_U32, umask),
	REQUEST(10, WIRE_BYTES, rlimits),
	REQUEST(11, WIRE_STRING, target),
	REQUEST(12, WIRE_U64, wait_usec),
	REQUEST(13, WIRE_U32, terminals),
	REQUEST(14, WIRE_BYTES, terminal),
	REQUEST(15, WIRE_U64, limits.value[LIMIT_IO_WEIGHT]),
	REQUEST(16, WIRE_U64, limits.value[LIMIT_IO_READ]),
	REQUEST(17, WIRE_U64, limits.value[LIMIT_IO_WRITE]),
	REQUEST(18, WIRE_STRING, net),
	REQUEST(19, WIRE_U32, with_parent),
	REQUEST(20, WIRE_U64, tmp_bytes),
	REQUEST(21, WIRE_U32, brief),
	VIEW_ITEM(0),
	VIEW_ITEM(1),
	VIEW_ITEM(2),
	VIEW_ITEM(3),
	VIEW_ITEM(4),
	VIEW_ITEM(5),
	VIEW_ITEM(6),
	VIEW_ITEM(7),
	VIEW_ITEM(8),
	VIEW_ITEM(9),
	VIEW_ITEM(10),
	VIEW_ITEM(11),
	VIEW_ITEM(12),
	VIEW_ITEM(13),
	VIEW_ITEM(14),
	VIEW_ITEM(15),
};
_Static_assert(VIEW_ITEMS_MAX == 16, "each item of the view has its fields");
_Static_assert(RUN_FD_COUNT + 1 + VIEW_ITEMS_MAX <= WIRE_FDS_MAX, "all descriptors fit");
const size_t request_n_fields = ARRAY_SIZE(request_fields);

#define EXPLANATION(attr, kind, member) WIRE_FIELD(attr, kind, struct explanation, member)

const struct wire_field explanation_fields[] = {
	EXPLANATION(1, WIRE_BYTES, limits),
	EXPLANATION(2, WIRE_BYTES, ceiling),
	EXPLANATION(3, WIRE_STRING, access),
	EXPLANATION(4, WIRE_STRING, profile),
	EXPLANATION(5, WIRE_STRING, network),
	WIRE_ORIGINS(32, struct explanation, origins),
	WIRE_ORIGINS(64, struct explanation, ceiling_origins),
	EXPLANATION(6, WIRE_BYTES, in_force),
	WIRE_ORIGINS(96, struct explanation, above),
};
const size_t explanation_n_fields = ARRAY_SIZE(explanation_fields);

const struct wire_field answer_fields[] = {
	WIRE_FIELD(1, WIRE_U64, struct answer, count),
	WIRE_FIELD(2, WIRE_STRING, struct answer, text),
};
const size_t answer_n_fields = ARRAY_SIZE(answer_fields);

const struct wire_field signal_fields[] = {
	WIRE_FIELD(1, WIRE_U32, struct signal_order, number),
};
const size_t signal_n_fields = ARRAY_SIZE(signal_fields);

const int passed_signals[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT,
};
const size_t n_passed_signals = ARRAY_SIZE(passed_signals);

int signal_is_passed(uint32_t number)
{
	for (size_t i = 0; i < n_passed_signals; i++)
		if ((uint32_t)passed_signals[i] == number)
			return 1;
	return 0;
}

const char *const guest_state_names[GUEST_STATE_COUNT] = {
	[GUEST_WAITING] = "waiting", [GUEST_STARTING] = "starting", [GUEST_RUNNING] = "running",
	[GUEST_ENDING] = "ending",   [GUEST_WARM] = "warm", /* nobody's yet */
};

#define ROW(attr, kind, member) WIRE_FIELD(attr, kind, struct guest_row, member)

const struct wire_field guest_row_fields[] = {
	ROW(1, WIRE_STRING, id),	ROW(2, WIRE_STRING, name),
	ROW(3, WIRE_STRING, command),	ROW(4, WIRE_U32, state),
	ROW(5, WIRE_U32, uid),		ROW(6, WIRE_U32, caller_uid),
	ROW(7, WIRE_U32, main_pid),	ROW(8, WIRE_U64, started_usec),
	ROW(9, WIRE_U64, memory_bytes), ROW(10, WIRE_U64, memory_peak),
	ROW(11, WIRE_U64, pids),	ROW(12, WIRE_U64, cpu_usec),
	ROW(13, WIRE_BYTES, limits),	ROW(14, WIRE_STRING, profile),
	ROW(15, WIRE_STRING, cgroup),	ROW(16, WIRE_BYTES, own),
};
const size_t guest_row_n_fields = ARRAY_SIZE(guest_row_fields);

void request_clear(struct request *q)
{
	*q = (struct request){};
	limits_clear(&q->limits);
	q->tmp_bytes = LIMIT_UNSET;
}

int name_valid(const char *name)
{
	size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789._-");

	return len > 0 && len <= GUEST_NAME_MAX && name[len] == '\0' && name[0] != '-' &&
	       name[0] != '.';
}

int profile_name_valid(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");

	return len > 0 && len <= PROFILE_NAME_MAX && name[len] == '\0';
}

int entry_name_valid(const char *name)
{
	return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

int path_is_plain(const char *path)
{
	while (path[0] == '/') {
		size_t len = strcspn(path + 1, "/");

		if (len == 0 || (len <= 2 && strncmp(path + 1, "..", len) == 0))
			return 0;
		path += 1 + len;
		if (!path[0])
			return 1;
	}
	return 0;
}

int view_kind_has_fd(uint32_t kind)
{
	return kind == VIEW_RO || kind == VIEW_RW;
}

size_t request_first_view_fd(const struct request *q)
{
	return RUN_FD_COUNT + (q->with_parent != 0);
}

size_t request_n_fds(const struct request *q)
{
	size_t n = request_first_view_fd(q);

	for (size_t i = 0; i < VIEW_ITEMS_MAX; i++)
		n += view_kind_has_fd(q->view[i].kind) ? 1 : 0;
	return n;
}

static int view_text_valid(uint32_t kind, const char *text)
{
	if (kind == VIEW_NONE)
		return !text[0];
	if (kind == VIEW_PIN || kind == VIEW_PIN_RO)
		return entry_name_valid(text);
	return path_is_plain(text) || (view_kind_has_fd(kind) && !text[0]);
}

static int check_view(const struct request *q, struct error *e)
{
	int ended = 0, has_rw = 0;

	for (size_t i = 0; i < VIEW_ITEMS_MAX; i++) {
		const struct view_item *item = &q->view[i];

		if (item->kind >= VIEW_KIND_COUNT || (ended && item->kind != VIEW_NONE) ||
		    !view_text_valid(item->kind, item->text))
			return error_set(e, -EINVAL, "item %zu of the view is not valid", i);
		ended = item->kind == VIEW_NONE;
		has_rw |= item->kind == VIEW_RW;
		if ((item->kind == VIEW_PIN || item->kind == VIEW_PIN_RO) && !has_rw)
			return error_set(e, -EINVAL, "--pin %s: there is no --rw in front of it",
					 item->text);
	}
	return 0;
}

int request_check(const struct request *q, struct error *e)
{
	if (q->name[0] && !name_valid(q->name))
		return error_set(e, -EINVAL, "the name is not valid");
	if (q->target[0] && !name_valid(q->target))
		return error_set(e, -EINVAL, "the name of the guest to act on is not valid");
	if (q->net[0] && !profile_name_valid(q->net))
		return error_set(e, -EINVAL, "the network profile's name is not valid");
	if (!text_printable(q->command))
		return error_set(e, -EINVAL, "the command's text is not printable");
	if (q->umask > 0777)
		return error_set(e, -EINVAL, "the umask %#o is not valid", q->umask);
	if (q->terminals >= 1u << 3)
		return error_set(e, -EINVAL, "there are only three standard streams");
	if (q->with_parent > 1)
		return error_set(e, -EINVAL, "there is only one parent");
	return check_view(q, e);
}

void command_text(char *const argv[], char text[COMMAND_TEXT_MAX + 1])
{
	struct text t;

	text_start(&t, text, COMMAND_TEXT_MAX + 1);
	for (size_t i = 0; argv[i]; i++) {
		if (i > 0)
			text_add(&t, " ");
		text_add(&t, argv[i]);
	}
}

/* ---- argv and environment ---- */

struct strings_header {
	uint32_t n_args, n_env;
};

/* The bytes that the strings of @v take, each with its NUL; their number is added to *n. */
static size_t vector_bytes(char *const v[], uint32_t *n)
{
	size_t bytes = 0;

	for (; *v; v++, ++*n)
		bytes += strlen(*v) + 1;
	return bytes;
}

static char *copy_vector(char *to, char *const v[])
{
	for (; *v; v++)
		to = stpcpy(to, *v) + 1;
	return to;
}

static int sealed_memfd(const void *data, size_t len, struct error *e)
{
	_cleanup_close_ int fd = sealable_memfd("harpe-gov-strings");
	int r;

	if (fd < 0)
		return error_errno(e, fd, "cannot make a memfd for the command");
	r = write_whole(fd, data, len);
	if (r == -EFBIG)
		return error_set(e, r,
				 "the command and its environment take %zu bytes, more than "
				 "\"ulimit -f\" lets anybody write",
				 len);
	if (r < 0)
		return error_errno(e, r, "cannot write the command into a memfd");
	r = seal_memfd(fd);
	return r < 0 ? error_errno(e, r, "cannot seal the memfd of the command") : TAKE_FD(fd);
}

int strings_pack(char *const argv[], char *const envp[], struct error *e)
{
	struct strings_header head = {};
	size_t bytes = vector_bytes(argv, &head.n_args) + vector_bytes(envp, &head.n_env);
	_cleanup_free_ char *buf = NULL;
	char *to;

	if (bytes > GUEST_STRINGS_MAX)
		return error_set(e, -E2BIG,
				 "the command and its environment take %zu bytes, more than %u",
				 bytes, GUEST_STRINGS_MAX);
	buf = malloc(sizeof(head) + bytes);
	if (!buf)
		return error_errno(e, -ENOMEM, "cannot pack the command");
	memcpy(buf, &head, sizeof(head));
	to = copy_vector(buf + sizeof(head), argv);
	copy_vector(to, envp);
	return sealed_memfd(buf, sizeof(head) + bytes, e);
}

/* Asks for the seals first: that never blocks, whatever the peer sent, and only a memfd has any. */
int strings_check(int fd, struct error *e)
{
	struct statfs fs;
	struct stat st;

	if (!is_sealed_memfd(fd))
		return error_set(e, -EINVAL, "the command did not come in a sealed memfd");
	if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC || fstat(fd, &st) < 0)
		return error_set(e, -EINVAL, "the command did not come in a plain memfd");
	if (st.st_size < (off_t)sizeof(struct strings_header) ||
	    st.st_size > (off_t)(sizeof(struct strings_header) + GUEST_STRINGS_MAX))
		return error_set(e, -EINVAL, "the command's memfd has a wrong size");
	return 0;
}

/* Points v[0 .. n-1] at the strings from *from on, v[n] is NULL; *from is moved behind them. */
static int point_at(char **v, uint32_t n, char **from, char *end)
{
	for (uint32_t i = 0; i < n; i++) {
		char *nul = memchr(*from, '\0', (size_t)(end - *from));

		if (!nul)
			return -EINVAL;
		v[i] = *from;
		*from = nul + 1;
	}
	v[n] = NULL;
	return 0;
}

static int unpack(char *data, size_t size, char ***ret_argv, char ***ret_envp)
{
	char *from = data + sizeof(struct strings_header), *end = data + size;
	_cleanup_free_ char **argv = NULL, **envp = NULL;
	struct strings_header head;

	memcpy(&head, data, sizeof(head));
	if (head.n_args == 0 || (uint64_t)head.n_args + head.n_env > (size_t)(end - from))
		return -EINVAL;
	argv = calloc((size_t)head.n_args + 1, sizeof(*argv));
	envp = calloc((size_t)head.n_env + 1, sizeof(*envp));
	if (!argv || !envp)
		return -ENOMEM;
	if (point_at(argv, head.n_args, &from, end) < 0 ||
	    point_at(envp, head.n_env, &from, end) < 0 || from != end)
		return -EINVAL;
	*ret_argv = TAKE_PTR(argv);
	*ret_envp = TAKE_PTR(envp);
	return 0;
}

int strings_unpack(int fd, char ***ret_argv, char ***ret_envp)
{
	struct stat st;
	size_t size;
	char *data;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)sizeof(struct strings_header))
		return -EINVAL;
	size = (size_t)st.st_size;
	data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	r = unpack(data, size, ret_argv, ret_envp);
	if (r < 0)
		munmap(data, size);
	return r;
}
