/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* One all-reduce over the connections of an epoch: the array is divided into messages, which are sent under the credit; the sums
 * that return replace it.
 *
 * Messages of a tree's part of the array, D of them with data:
 *   block     N of one packet, whose headers contain the exponents of the first N with data; then D; then one without data
 *   quarter   D; then one without data. A header has the check numbers of its own message's rows
 *   others    D; then one without data
 * Each starts with a header (message_header.h). The header of message m has the exponents of message m + N, which is not sent
 * before. A message counts only after a later header was summed over all workers, so the last message has no data: a fabric that
 * stops adding up in the middle (its entries were removed with the job) is detected. */
#ifndef NETFOLD_ROCE_CALL_H
#define NETFOLD_ROCE_CALL_H

#include "connections.h"

enum nr_call_type {
    NR_CALL_BLOCK_FLOAT,
    NR_CALL_INTEGER,
    NR_CALL_FLOAT32,
    NR_CALL_QUARTER, /* a gradient whose rows' ranges are predicted (rows.h) */
    NR_CALL_REPEAT, /* as block: rows of a gradient that did not fit */
    NR_CALL_HANDOVER /* 32-bit words of one worker, zeros (as floats: -0) of the other workers */
};

enum nr_outcome {
    NR_DONE,
    NR_EPOCH_CHANGED, /* the epoch or the job ended */
    NR_DEADLINE, /* it passed */
    NR_CONNECTION_LOST, /* or the switches do not add up: a new epoch may help */
    NR_CALL_DESYNC, /* the workers are in different calls */
};

struct nr_call {
    enum nr_call_type type;
    enum nr_op op;
    uint64_t number;
    size_t elements;
    const void *from; /* NULL: zeros */
    void *to;
    struct nr_rows *rows; /* of NR_CALL_QUARTER */
    struct nr_calls *log;
    /* found in the sums, alike at all workers */
    bool overflow, not_finite;
};

/* Packets of the call in the tree with the most. */
uint64_t nr_call_packets(const struct nr_call *call, const struct nr_assignment *assignment,
                         const struct nr_connection *connections);
/* Polled while no completion comes: when the descriptor is readable, `is_canceled(context)` decides whether the call ends. */
struct nr_watch {
    int descriptor;
    bool (*is_canceled)(void *context);
    void *context;
};

/* Returns with the last sum; the device continues to send what the successor has not acknowledged. `until`: of CLOCK_MONOTONIC, in
 * seconds. */
enum nr_outcome nr_call_run(struct nr_call *call, const struct nr_assignment *assignment, struct nr_device *device,
                            struct nr_connection *connections, const struct nr_watch *watch, double until,
                            char reason[NR_REASON_BYTES]);
/* Between calls: waits until the successor has acknowledged all messages. */
enum nr_outcome nr_flush(const struct nr_assignment *assignment, struct nr_device *device, struct nr_connection *connections,
                         const struct nr_watch *watch, double until, char reason[NR_REASON_BYTES]);

#endif
