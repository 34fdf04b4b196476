/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "engine_internal.h"

#include <errno.h>
#include <sys/epoll.h>

void ss_engine_lock(struct ss_engine *engine) { ss_lock_acquire(&engine->lock); }

void ss_engine_unlock(struct ss_engine *engine) { ss_lock_release(&engine->lock); }

int ss_engine_watch_fd(struct ss_engine *engine, int fd, enum ss_event_source source, uint32_t number, uint32_t flags) {
    struct epoll_event event = {.events = EPOLLIN | flags, .data.u64 = (uint64_t)source << 32 | number};
    return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}
