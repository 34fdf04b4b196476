/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Fault injection on one direction of one port's link: loss, duplication, reordering, corruption, delay.
 *
 * The fate of the n-th frame depends on the seed and on n alone, never on the clock: every frame draws the same
 * number of random numbers. A failing run is reproducible. */

#ifndef SS_FAULT_INJECTOR_H
#define SS_FAULT_INJECTOR_H

#include <stdbool.h>
#include <stdint.h>

struct ss_fault_settings {
    double loss, duplicate, reorder, corrupt; /* probabilities, 0 to 1 */
    uint64_t delay_ns;
    uint64_t jitter_ns;   /* the delay is uniform in delay +- jitter, so frames may overtake one another */
    uint32_t reorder_gap; /* a reordered frame is released after this many later frames */
    uint64_t reorder_hold_ns; /* or after this time if fewer arrive */
    uint64_t seed;
};

struct ss_fault_counters {
    uint64_t lost, duplicated, reordered, corrupted, delayed;
    uint64_t overflowed; /* dropped: the queued bytes are at their limit */
};

struct ss_delayed_frame {
    uint64_t due_ns;
    uint64_t order; /* among equal due times: first in, first out */
    uint32_t behind; /* reordered frame: 1 + number of later frames still to pass; delayed frame: 0 */
    uint32_t length;
    uint8_t *data;
};

struct ss_fault_injector {
    struct ss_fault_settings settings;
    struct ss_fault_counters counters;
    bool active;
    uint64_t random[4];
    uint64_t next_order;
    uint64_t waiting_bytes;
    uint32_t waiting_count, waiting_capacity, held_count;
    struct ss_delayed_frame *waiting; /* a binary heap on (due_ns, order) */
};

typedef void ss_frame_sink(void *context, const uint8_t *data, uint32_t length);

/* Replaces the settings and restarts the random sequence. Queued frames keep their times. */
void ss_fault_configure(struct ss_fault_injector *injector, const struct ss_fault_settings *settings);

void ss_fault_free(struct ss_fault_injector *injector);

/* Passes a frame through the injector. Calls `sink` for each frame released at once; queues the others. */
void ss_fault_pass(struct ss_fault_injector *injector, uint64_t now_ns, const uint8_t *data, uint32_t length,
                   ss_frame_sink *sink, void *context);

/* Releases the frames that are due. */
void ss_fault_release(struct ss_fault_injector *injector, uint64_t now_ns, ss_frame_sink *sink, void *context);

/* Returns the due time of the next queued frame; UINT64_MAX: none. */
uint64_t ss_fault_next_due(const struct ss_fault_injector *injector);

#endif
