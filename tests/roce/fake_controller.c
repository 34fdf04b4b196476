/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_controller.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "engine/numerics/codec.h"
#include "fake_verbs.h"

struct fake_controller control;

static void tell(int worker, uint32_t type, const void *body, size_t size) {
    if (control.channels[worker] != NULL) (void)!na_send(control.channels[worker], type, body, size);
}

static void tell_ended(int worker, const char *reason) { tell(worker, NA_ENDED, reason, strlen(reason)); }

static int64_t scheme(void) {
    return strcmp(control.numerics, "integer") == 0   ? NF_INTEGER
           : strcmp(control.numerics, "float32") == 0 ? NF_FLOAT32_SUM
           : strcmp(control.numerics, "quarter") == 0 ? NF_ROTATED_QUARTER
                                                      : NF_BLOCK_FLOAT;
}

static void write_address(char to[NA_ADDRESS_BYTES], int worker) {
    snprintf(to, NA_ADDRESS_BYTES, "10.0.0.%hhu", (unsigned char)(worker + 1));
}

static void assign(int worker) {
    struct na_assign message = {.lease_ms = 300, .scheme = scheme()};
    write_address(message.address, worker);
    struct nf_assignment *a = &message.assignment;
    a->epoch = control.epoch, a->lanes = LANES, a->workers = control.present, a->rank = worker, a->tree_count = control.trees;
    for (int t = 0; t < control.trees; t++)
        a->trees[t] = (struct nf_tree_spec){
            .tree = t + 5, .slots = 2 * control.window, .window = control.window, .share = 1.0 / control.trees};
    tell(worker, NA_ASSIGN, &message, sizeof message);
}

static void tell_departure(int takes_part) {
    struct na_departures message = {.epoch = control.epoch, .calls = (int64_t)control.limit, .hosts = "h4"};
    message.departures =
        (struct nf_departures){1, takes_part ? (int64_t)control.limit : 0, takes_part, control.departure == FINAL};
    for (int w = 0; w + 1 < control.workers; w++) tell(w, NA_DEPARTURES, &message, sizeof message);
}

static void new_epoch(void) {
    control.epoch++;
    memset(control.known, 0, sizeof control.known);
    if (control.departure != FORBIDDEN && control.left > 0) control.present = control.workers - 1;
    fake_hosts(control.present);
    for (int w = 0; w < control.present; w++) assign(w);
    if (control.departure == FINAL && control.left > 0) tell_departure(0);
}

static void tell_rings(void) {
    uint64_t least = control.ends[0].calls, most = least;
    int giver = 0;
    for (int w = 0; w < control.present; w++) {
        if (!control.known[w]) return;
        uint64_t calls = control.ends[w].calls;
        if (calls < least) least = calls;
        if (calls > most) most = calls, giver = w;
    }
    control.gave = control.gave || least != most;
    for (int w = 0; w < control.present; w++) {
        int next = (w + 1) % control.present, before = (w + control.present - 1) % control.present;
        struct na_ring ring = {.epoch = control.epoch, .source_rank = giver, .tree_count = control.trees};
        ring.min_calls = least, ring.max_calls = most;
        for (int t = 0; t < control.trees; t++) {
            const struct na_queue_pair *from = &control.ends[before].trees[t];
            struct na_neighbors *n = &ring.trees[t];
            n->tree = t + 5, n->successor_qpn = control.ends[next].trees[t].recv_qpn;
            n->predecessor_qpn = from->send_qpn, n->predecessor_psn = from->first_psn;
            write_address(n->successor, next);
            write_address(n->predecessor, before);
        }
        if (control.epoch != control.short_epoch || w + 1 < control.present) tell(w, NA_RING, &ring, sizeof ring);
    }
    control.linked = true;
    if (control.epoch == control.short_epoch) {
        usleep(200000); /* the others are in their next call then, most often */
        new_epoch();
    }
}

static void leave(int worker, uint64_t calls) {
    control.has_left[worker] = true;
    control.left++;
    if (control.departure != FORBIDDEN && control.left == 1) {
        control.limit = calls;
        tell_departure(1);
        if (control.is_awaiting) new_epoch();
        if (control.releases) {
            usleep(200000); /* the others have heard of it then, most often */
            fake_release();
        }
    }
    if (control.cut && worker == 0) shutdown(na_channel_descriptor(control.channels[0]), SHUT_RDWR);
    if (control.left == control.send_again) {
        usleep(200000); /* a worker that does not wait for it is gone then; one that does has renewed its lease of 300 ms */
        fake_send_again();
    }
    for (int w = 0; w < control.workers && control.left == control.workers; w++)
        tell_ended(w, "job j is done: every worker left");
}

/* They are in a call then, and have sent. */
static void end_job_soon(void) {
    if (!control.linked || control.ends_after == 0 || --control.ends_after > 0) return;
    for (int w = 1; w < control.workers; w++) tell_ended(w, "job j is canceled");
}

static void hear(int worker, const struct na_message *message) {
    CHECK(!control.has_left[worker], "message %u behind the last one", message->type);
    switch (message->type) {
    case NA_REPORT:
        CHECK(message->size == sizeof(struct na_report), "%zu bytes of a report", message->size);
        end_job_soon();
        break;
    case NA_HELLO:
        assign(worker);
        break;
    case NA_QUEUE_PAIRS:
        CHECK(message->size == sizeof control.ends[worker], "%zu bytes of queue pairs", message->size);
        if (((const struct na_queue_pairs *)message->body)->epoch != control.epoch) break;
        memcpy(&control.ends[worker], message->body, message->size);
        control.known[worker] = true;
        tell_rings();
        break;
    case NA_NEW_EPOCH:
        if (((const struct na_new_epoch *)message->body)->epoch != control.epoch) break;
        control.is_awaiting = control.awaits_leave && control.left == 0;
        if (!control.is_awaiting) new_epoch();
        break;
    case NA_LEAVE:
        leave(worker, (uint64_t)((const struct na_report *)message->body)->totals.next_call);
        break;
    default:
        CHECK(false, "a message of type %u", message->type);
    }
}

/* False: the worker is gone. */
static bool receive(int worker) {
    struct na_message message;
    int found;
    while ((found = na_receive(control.channels[worker], &message, 0)) > 0) hear(worker, &message);
    if (found == 0) return true;
    na_channel_close(control.channels[worker]);
    control.channels[worker] = NULL;
    return false;
}

static void *attend(void *nothing) {
    int gone = 0;
    for (int w = 0; w < control.workers; w++) control.channels[w] = na_channel_open(accept(control.listeners[w], NULL, NULL));
    while (gone < control.workers) {
        struct pollfd watched[MOST];
        for (int w = 0; w < control.workers; w++) {
            int stream = control.channels[w] ? na_channel_descriptor(control.channels[w]) : -1;
            watched[w] = (struct pollfd){stream, POLLIN, 0};
        }
        poll(watched, (nfds_t)control.workers, -1);
        for (int w = 0; w < control.workers; w++)
            if (watched[w].revents && control.channels[w] && !receive(w)) gone++;
    }
    return nothing;
}

void fake_controller_path(char *path, size_t room, int worker) { snprintf(path, room, "%s/%d", control.folder, worker); }

void fake_controller_start(int workers, int trees, int window, const char *numerics) {
    control.workers = workers, control.trees = trees, control.window = window, control.numerics = numerics;
    control.epoch = 1, control.present = workers;
    for (int w = 0; w < workers; w++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        fake_controller_path(address.sun_path, sizeof address.sun_path, w);
        control.listeners[w] = socket(AF_UNIX, SOCK_STREAM, 0);
        CHECK(bind(control.listeners[w], (struct sockaddr *)&address, sizeof address) == 0, "bind");
        listen(control.listeners[w], 1);
    }
    pthread_create(&control.thread, NULL, attend, NULL);
}
