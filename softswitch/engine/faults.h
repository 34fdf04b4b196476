/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A faulty line: what one direction of one port's link does to the frames that pass.
 *
 * The fate of the n-th frame depends on the seed and on n alone, never on the clock: every frame draws the same
 * number of random numbers. So a failing run can be repeated. */

#ifndef NETFOLD_FAULTS_H
#define NETFOLD_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

struct fault_settings {
    double loss, duplicate, reorder, corrupt; /* probabilities, 0 to 1 */
    uint64_t delay_ns;
    uint64_t jitter_ns;   /* the delay is drawn evenly from delay +- jitter, so frames may overtake one another */
    uint32_t reorder_gap; /* a reordered frame comes out behind this many later frames, */
    uint64_t reorder_hold_ns; /* or after this time when too few come */
    uint64_t seed;
};

struct fault_counters {
    uint64_t lost, duplicated, reordered, corrupted, delayed;
    uint64_t overflowed; /* dropped because too many bytes were waiting */
};

struct waiting_frame {
    uint64_t due_ns;
    uint64_t order; /* among equal due times: first in, first out */
    uint32_t behind; /* for a reordered frame: 1 + how many later frames must still pass; 0 for a delayed one */
    uint32_t length;
    uint8_t *data;
};

struct fault_line {
    struct fault_settings settings;
    struct fault_counters counters;
    bool active;
    uint64_t random[4];
    uint64_t next_order;
    uint64_t waiting_bytes;
    uint32_t waiting_count, waiting_room, held_count;
    struct waiting_frame *waiting; /* a binary heap on (due_ns, order) */
};

typedef void fault_sink(void *context, const uint8_t *data, uint32_t length);

/* New settings, from now on; the random sequence starts anew. Frames that wait already keep their times. */
void fault_configure(struct fault_line *line, const struct fault_settings *settings);

void fault_free(struct fault_line *line);

/* Passes a frame through the line: `sink` gets what comes out at once; the rest waits. */
void fault_pass(struct fault_line *line, uint64_t now_ns, const uint8_t *data, uint32_t length, fault_sink *sink,
                void *context);

/* Lets out the frames whose time has come. */
void fault_release(struct fault_line *line, uint64_t now_ns, fault_sink *sink, void *context);

/* When the next waiting frame is due; UINT64_MAX when none waits. */
uint64_t fault_next_due(const struct fault_line *line);

#endif
