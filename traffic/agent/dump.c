/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "dump.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int requests;

int na_wants_dumps(void) {
    const char *folder = getenv("NETFOLD_DUMP_DIR");
    return folder != NULL && *folder != '\0';
}

static void on_signal(int number) {
    (void)number;
    atomic_fetch_add(&requests, 1);
}

void na_take_dump_signal(void) {
    struct sigaction present;
    if (!na_wants_dumps() || sigaction(SIGUSR1, NULL, &present) || present.sa_handler != SIG_DFL) return;
    struct sigaction own = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &own, NULL);
}

int na_dump_requests(void) { return atomic_load(&requests); }

void na_request_dump(void) { atomic_fetch_add(&requests, 1); }

void na_send_calls(struct na_channel *channel, int64_t (*copy)(void *context, struct nf_call_record *to, int64_t capacity),
                   void *context) {
    struct nf_call_record *records = malloc(NF_CALL_LOG * sizeof *records);
    if (records == NULL) return;
    int64_t count = copy(context, records, NF_CALL_LOG);
    for (int64_t at = 0; at <= count; at += NA_CALLS_MAX) {
        int64_t part = count - at < NA_CALLS_MAX ? count - at : NA_CALLS_MAX;
        na_send(channel, NA_CALLS, records + at, (size_t)part * sizeof *records);
    }
    free(records);
}
