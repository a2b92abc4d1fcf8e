/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages between client and supervisor: the type says what is in it, as both ends read it. What
 * is refused leaves the object as it was; what is taken can be sent again and used.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/report.h"
#include "common/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

union object {
	struct request request;
	struct report report;
	struct guest_row row;
	struct answer answer;
	struct signal_order signal;
	struct explanation explanation;
};

static void use_request(const union object *o)
{
	if (request_check(&o->request, NULL) == 0 && o->request.name[0] &&
	    !name_valid(o->request.name))
		abort();
}

/* As the journal wants the names of its fields (systemd.journal-fields(7)). */
static void use_flat(void *userdata, const char *name, const char *text)
{
	(void)userdata;
	if (!name[0] || strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != strlen(name) ||
	    !text)
		abort();
}

static void use_report(const union object *o)
{
	char sentence[512], *json = report_json(&o->report);

	if (!json || json[strlen(json) - 1] != '\n')
		abort();
	free(json);
	report_flat(&o->report, use_flat, NULL);
	report_sentence(&o->report, sentence, sizeof(sentence));
	if (report_exit_status(&o->report) > 255)
		abort();
}

static void use_signal(const union object *o)
{
	if (signal_is_passed(o->signal.number) && o->signal.number > 64)
		abort();
}

static const struct table {
	enum wire_type type;
	const struct wire_field *fields;
	const size_t *n_fields;
	void (*use)(const union object *o);
} tables[] = {
	{ WIRE_RUN, request_fields, &request_n_fields, use_request },
	{ WIRE_PS, request_fields, &request_n_fields, use_request },
	{ WIRE_KILL, request_fields, &request_n_fields, use_request },
	{ WIRE_REPORT, report_fields, &report_n_fields, use_report },
	{ WIRE_GUEST, guest_row_fields, &guest_row_n_fields, NULL },
	{ WIRE_DONE, answer_fields, &answer_n_fields, NULL },
	{ WIRE_REFUSED, answer_fields, &answer_n_fields, NULL },
	{ WIRE_SIGNAL, signal_fields, &signal_n_fields, use_signal },
	{ WIRE_EXPLAIN, request_fields, &request_n_fields, use_request },
	{ WIRE_EXPLANATION, explanation_fields, &explanation_n_fields, NULL },
};

/* What was taken goes over the wire once more. */
static void send_again(const struct table *t, const union object *o)
{
	WIRE_BUFFER(buf);
	static union object back;
	ssize_t n = wire_encode(t->type, t->fields, *t->n_fields, o, buf, sizeof(buf));

	memset(&back, 0, sizeof(back));
	if (n < 0 || wire_decode(t->fields, *t->n_fields, buf, (size_t)n, &back, NULL) < 0 ||
	    memcmp(&back, o, sizeof(back)) != 0)
		abort();
}

static void read_as(const struct table *t, const void *buf, size_t size)
{
	static union object o, before; /* zeroed: strings that are not there are empty */

	memset(&o, 0, sizeof(o));
	memset(&before, 0, sizeof(before));
	if (wire_decode(t->fields, *t->n_fields, buf, size, &o, NULL) < 0) {
		if (memcmp(&o, &before, sizeof(o)) != 0)
			abort();
		return;
	}
	send_again(t, &o);
	if (t->use)
		t->use(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *buf = malloc(size ? size : 1); /* of just this size, so that ASan sees the end */
	int type;

	if (!buf)
		return 0;
	memcpy(buf, data, size);
	type = wire_type(buf, size, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (type < 0 || tables[i].type == (enum wire_type)type)
			read_as(&tables[i], buf, size);
	free(buf);
	return 0;
}
