/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `harpe-gov run --explain`: what a run would get, and why. */
#pragma once

#include "common/request.h"

/* Asks the daemon at @socket and prints on standard output; starts nothing. */
int explain(const char *socket, const struct request *q, struct error *e);
