/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/walk.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"

#define DEPTH_MAX 16 /* NFT_JUMP_STACK_SIZE */

/* net/netfilter/nf_nat_proto.c: where translation is done, whatever a chain's own priority is. */
#define NAT_OUTPUT_PRIORITY	 (-100)
#define NAT_POSTROUTING_PRIORITY 100

/* What may come out of a chain. */
enum { MAY_ACCEPT = 1, MAY_DROP = 2, MAY_RETURN = 4, MAY_ANY = 7 };

struct way {
	struct machine machine;
	size_t rules_left;
	struct walk_step *step;
};

/* ---- chains ---- */

static unsigned int pass_chain(struct way *way, const struct foreign_chain *c, unsigned int depth);

static unsigned int follow(struct way *way, const struct foreign_chain *from, const char *name,
			   unsigned int depth)
{
	struct foreign_chain *c =
		name ? foreign_find_chain(way->machine.ruleset, from->table, name) : NULL;

	return c ? pass_chain(way, c, depth + 1) : MAY_ANY;
}

/* What comes out of a rule's verdict; MAY_RETURN: this chain is left. 0: on to the next rule. */
static unsigned int take_verdict(struct way *way, const struct foreign_chain *c,
				 enum verdict_kind verdict, const char *chain, unsigned int depth)
{
	switch (verdict) {
	case VERDICT_ACCEPT:
		return MAY_ACCEPT;
	case VERDICT_DROP:
		return MAY_DROP;
	case VERDICT_RETURN:
		return MAY_RETURN;
	case VERDICT_JUMP:
	case VERDICT_GOTO:
		return follow(way, c, chain, depth);
	case VERDICT_ANY:
		return MAY_ANY;
	case VERDICT_NONE:
		break;
	}
	return 0;
}

static void note_doubt(struct way *way, struct walk_place place, const char *expr)
{
	if (way->step->doubt.chain)
		return;
	way->step->doubt = place;
	way->step->doubt_expr = expr;
}

/* After it the next rule comes, or not; in part or whole. */
struct outcome {
	unsigned int may;
	bool goes_on;
};

static struct outcome pass_rule(struct way *way, const struct foreign_chain *c,
				const struct foreign_rule *rule, unsigned int depth)
{
	struct machine *m = &way->machine;
	const struct walk_place place = { c, rule };
	enum verdict_kind verdict;
	bool maybe;
	struct outcome o;

	machine_run(m, c->table, rule);
	verdict = m->verdict;
	maybe = m->match == ANSWER_MAYBE;
	if (m->match == ANSWER_NO || verdict == VERDICT_NONE)
		return (struct outcome){ 0, true };
	if (maybe || verdict == VERDICT_ANY) {
		note_doubt(way, place, m->doubt);
		m->uncertain = true;
	}
	if (verdict == VERDICT_ACCEPT || verdict == VERDICT_DROP)
		way->step->decided = place;
	o.may = take_verdict(way, c, verdict, m->chain, depth);
	o.goes_on = maybe || verdict == VERDICT_ANY;
	if (verdict == VERDICT_JUMP) {
		o.goes_on |= (o.may & MAY_RETURN) != 0;
		o.may &= ~(unsigned int)MAY_RETURN;
	}
	return o;
}

static unsigned int pass_chain(struct way *way, const struct foreign_chain *c, unsigned int depth)
{
	unsigned int may = 0;

	if (depth > DEPTH_MAX)
		return MAY_ANY;
	for (size_t i = 0; i < c->n_rules; i++) {
		struct outcome o;

		if (way->rules_left == 0) {
			note_doubt(way, (struct walk_place){ c, &c->rules[i] }, NULL);
			return MAY_ANY;
		}
		way->rules_left--;
		o = pass_rule(way, c, &c->rules[i], depth);
		may |= o.may;
		if (!o.goes_on)
			return may;
	}
	return may | MAY_RETURN;
}

/* ---- base chains ---- */

static bool is_nat(const struct foreign_chain *c)
{
	return c->type && strcmp(c->type, "nat") == 0;
}

/* @perhaps: it may be that this chain is not asked. */
static void pass_base(struct way *way, const struct foreign_chain *c, bool perhaps)
{
	struct walk_step *step = way->step;
	unsigned int may;

	way->machine.uncertain = step->only_device || perhaps;
	way->machine.rewritten = way->machine.translated = false;
	way->machine.is_nat = is_nat(c);
	may = pass_chain(way, c, 0);
	if (may & MAY_RETURN) {
		may |= c->policy == NF_DROP ? MAY_DROP : MAY_ACCEPT;
		if (!(may & (c->policy == NF_DROP ? MAY_ACCEPT : MAY_DROP)))
			step->decided = (struct walk_place){ c, NULL };
	}
	if (perhaps)
		may |= MAY_ACCEPT;
	step->rewritten = way->machine.rewritten;
	step->translated = way->machine.translated;
	step->outcome = WALK_UNKNOWN;
	if (!(may & MAY_DROP))
		step->outcome = WALK_ACCEPT;
	else if (!(may & MAY_ACCEPT))
		step->outcome = WALK_DROP;
}

static int stage(const struct foreign *f, const struct foreign_chain *c)
{
	if (f->tables[c->table].family == NFPROTO_NETDEV)
		return 2;
	return c->hook == NF_INET_LOCAL_OUT ? 0 : 1;
}

static int64_t priority(const struct foreign *f, const struct foreign_chain *c)
{
	if (!is_nat(c))
		return c->priority;
	return stage(f, c) == 0 ? NAT_OUTPUT_PRIORITY : NAT_POSTROUTING_PRIORITY;
}

/* The kernel puts a newcomer before those of the same priority. */
static int compare_steps(const void *a, const void *b, void *foreign)
{
	const struct foreign_chain *x = ((const struct walk_step *)a)->base;
	const struct foreign_chain *y = ((const struct walk_step *)b)->base;
	int64_t by_priority = priority(foreign, x) - priority(foreign, y);

	if (stage(foreign, x) != stage(foreign, y))
		return stage(foreign, x) - stage(foreign, y);
	if (by_priority != 0)
		return by_priority < 0 ? -1 : 1;
	if (is_nat(x) != is_nat(y))
		return is_nat(x) ? -1 : 1;
	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	return x < y ? 1 : -1;
}

static bool is_passed(const struct foreign *f, const struct foreign_chain *c, uint8_t family)
{
	const struct foreign_table *t = &f->tables[c->table];

	if (!c->base || (t->flags & NFT_TABLE_F_DORMANT))
		return false;
	if (t->family == NFPROTO_NETDEV)
		return c->hook == NF_NETDEV_EGRESS;
	if (t->family != NFPROTO_INET &&
	    t->family != (family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6))
		return false;
	return c->hook == NF_INET_LOCAL_OUT || c->hook == NF_INET_POST_ROUTING;
}

static int find_steps(struct foreign *f, const struct packet *p, struct walk *ret)
{
	size_t n = 0;

	ret->steps = calloc(f->n_chains + 1, sizeof(*ret->steps));
	if (!ret->steps)
		return -ENOMEM;
	for (size_t i = 0; i < f->n_chains; i++)
		if (is_passed(f, &f->chains[i], p->family))
			ret->steps[n++] = (struct walk_step){
				.base = &f->chains[i],
				.only_device = stage(f, &f->chains[i]) == 2,
			};
	ret->n_steps = n;
	if (n > 1)
		qsort_r(ret->steps, n, sizeof(*ret->steps), compare_steps, f);
	return 0;
}

/* Has an earlier chain of this hook translated already? */
static enum ternary is_translated(const struct walk *w, size_t index, const struct foreign *f)
{
	const struct walk_step *step = &w->steps[index];
	enum ternary a = ANSWER_NO;

	for (size_t i = index; i-- > 0 && is_nat(step->base);) {
		const struct walk_step *earlier = &w->steps[i];

		if (!earlier->translated || stage(f, earlier->base) != stage(f, step->base))
			continue;
		if (!earlier->doubt.chain)
			return ANSWER_YES;
		a = ANSWER_MAYBE;
	}
	return a;
}

static void settle(struct walk *w, size_t index)
{
	struct walk_step *step = &w->steps[index];

	if (step->only_device && step->outcome == WALK_DROP)
		step->outcome = WALK_UNKNOWN;
	if (step->outcome == WALK_UNKNOWN && !step->doubt.chain)
		step->doubt = step->decided;
	if (step->outcome == WALK_ACCEPT || w->outcome == WALK_DROP)
		return;
	if (step->outcome == WALK_DROP || w->outcome == WALK_ACCEPT)
		w->decisive = index;
	w->outcome = step->outcome;
}

int walk(struct foreign *f, const struct packet *p, struct walk *ret)
{
	struct way way = { .rules_left = WALK_RULES_MAX };
	struct walk w = WALK_NULL;
	enum ternary translated;
	size_t passed = 0;

	if (find_steps(f, p, &w) < 0)
		return -ENOMEM;
	w.decisive = SIZE_MAX;
	machine_start(&way.machine, f, p);
	for (size_t i = 0; i < w.n_steps && w.outcome != WALK_DROP; i++) {
		passed = i + 1;
		way.step = &w.steps[i];
		translated = is_translated(&w, i, f);
		way.step->skipped = translated == ANSWER_YES;
		if (way.step->skipped)
			continue;
		pass_base(&way, w.steps[i].base, translated == ANSWER_MAYBE);
		settle(&w, i);
	}
	w.n_steps = passed;
	if (w.decisive > w.n_steps)
		w.decisive = w.n_steps;
	w.too_long = way.rules_left == 0;
	*ret = w;
	return 0;
}

void walk_free(struct walk *w)
{
	free(w->steps);
	*w = WALK_NULL;
}
