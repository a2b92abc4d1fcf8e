/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/supervisor/means.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "governor/guest/confine.h"
#include "governor/supervisor/pair.h"

struct stored {
	char build[MEANS_BUILD_MAX];
	uint32_t version;
	uint16_t length[CONFINE_PROGRAMS]; /* in instructions; 0: no profile needs this one */
	struct view_base view;
	struct sock_filter code[]; /* one program behind the other */
};

const char *means_build(void)
{
	static char text[MEANS_BUILD_MAX];

	if (!text[0])
		snprintf(text, sizeof(text), "%s %zu %zu %zu", HARPE_GOV_VERSION,
			 sizeof(struct pair_ask), sizeof(struct pair_reply), sizeof(struct stored));
	return text;
}

static int write_all(int fd, const struct guest_means *m)
{
	struct stored head = { .version = m->version, .view = *m->view };
	int r;

	strcpy(head.build, means_build());
	for (size_t i = 0; i < CONFINE_PROGRAMS; i++)
		head.length[i] = m->filters[i].len;
	r = write_whole(fd, &head, sizeof(head));
	for (size_t i = 0; i < CONFINE_PROGRAMS && r == 0; i++)
		r = write_whole(fd, m->filters[i].filter,
				m->filters[i].len * sizeof(struct sock_filter));
	return r;
}

int means_store(const struct guest_means *means, struct error *e)
{
	_cleanup_close_ int fd = sealable_memfd("harpe-gov-means");
	int r = fd < 0 ? fd : write_all(fd, means);

	if (r == 0)
		r = seal_memfd(fd);
	return r < 0 ? error_errno(e, r, "what guests may do cannot be written for supervisors")
		     : TAKE_FD(fd);
}

static size_t size_of(const struct stored *s)
{
	size_t n = 0;

	for (size_t i = 0; i < CONFINE_PROGRAMS; i++)
		n += s->length[i];
	return sizeof(*s) + n * sizeof(struct sock_filter);
}

int means_map(int fd, struct guest_means *ret, struct error *e)
{
	static struct sock_fprog filters[CONFINE_PROGRAMS];
	struct sock_filter *code;
	struct stored *s;
	struct stat st;

	if (fstat(fd, &st) < 0 || (size_t)st.st_size < sizeof(*s) || !is_sealed_memfd(fd))
		return error_set(e, -EPROTO,
				 "descriptor %d is not what harpe-govd prepares, which starts this "
				 "program",
				 fd);
	s = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (s == MAP_FAILED)
		return error_errno(e, -errno, "what the daemon prepared cannot be mapped");
	if (strncmp(s->build, means_build(), sizeof(s->build)) != 0)
		return error_set(e, -EPROTO,
				 "harpe-govd is of another version: restart harpe-gov.service");
	if (size_of(s) != (size_t)st.st_size)
		return error_set(e, -EPROTO, "what the daemon prepared is cut off");
	code = s->code;
	for (size_t i = 0; i < CONFINE_PROGRAMS; code += s->length[i++])
		filters[i] = (struct sock_fprog){ .len = s->length[i], .filter = code };
	ret->version = s->version;
	ret->filters = filters;
	ret->view = &s->view;
	return 0;
}
