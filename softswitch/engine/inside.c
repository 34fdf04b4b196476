/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <sys/epoll.h>

void enter(struct engine *engine) { ss_lock_take(&engine->lock); }

void leave(struct engine *engine) { ss_lock_leave(&engine->lock); }

int watch(struct engine *engine, int fd, enum event_source source, uint32_t number, uint32_t flags) {
    struct epoll_event event = {.events = EPOLLIN | flags, .data.u64 = (uint64_t)source << 32 | number};
    return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}
