/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cgroup v2 tree of our own that stands for harpe.slice:
 *
 *	hgtest-XXXXXX ("slice", level 1)
 *		a ("profile", level 2)
 *			b ("scope", level 3)
 *			c (another, or a child slice)
 *				f (a scope in that, level 4)
 *		d (another profile)
 *			e (a scope of it)
 */
#pragma once

#include "tests/net/net.h"

struct tree {
	char slice[64]; /* paths */
	char a[80], b[96], c[96], d[80], e[96], f[112];
	uint64_t a_id, b_id, c_id, d_id, f_id;
	struct firewall_policy policy; /* three uids from 90000 on, no profiles */
};

extern struct tree tree;

/* 0, or negative when there is no cgroup v2 to be had. */
int tree_make(void);
void tree_remove(void);

/* Moves this process. */
int tree_enter(const char *cgroup);
