/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "governor/daemon/daemon.h"

/* From now on slots are made anew when something is mounted or unmounted at or below a built-in
 * place of the view: the kernel tells by POLLPRI on mountinfo (proc(5)). A negative errno. */
int daemon_watch_mounts(struct daemon *d);
