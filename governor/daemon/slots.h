/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Warm slots: places that are made before anybody asks for them, each a uid, a scope with its
 * cgroups, and namespaces (spaces.h), for a guest with the default limits and profile. A run that
 * one fits takes it over, and then everything is as for any other: all limits and rules are read
 * back before the guest is released. Unless [pool] recycle is on no guest ever ran in a slot.
 */
#pragma once

#include "governor/daemon/run.h"

/* Gives @r, of which the limits and the slice are settled, the place of a slot that fits. */
bool slots_take(struct run *r);

/* The guest of @r is gone. With [pool] recycle its scope and holder become a slot again, with
 * another uid and another id; @r keeps its own uid. NULL: they go the way of all others. */
struct run *slots_take_back(struct run *r);

/* Makes guest/ and the namespaces of a slot that has a scope: then it is ready. */
void slots_prepare(struct run *slot);

/* A moment later: makes as many as the configuration wants. Nothing wakes up to do so but a run,
 * the start and a reload. */
void slots_need(struct daemon *d);

/* Gives one up, so that its uid, which nobody ever had, is free. */
void slots_yield(struct daemon *d);

/* Gives all of them up. */
void slots_drop(struct daemon *d);

/* The timer behind slots_need(). */
int slots_add_source(struct daemon *d);

/* The pure part: may a guest with @limits be in a scope that was made with @made? Less of what
 * guest/ can bound as well is fine, more is not. */
bool slots_fit(const struct limits *made, const struct limits *limits);
