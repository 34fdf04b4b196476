/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "fault_injector.h"

#include <stdlib.h>
#include <string.h>

enum { WAITING_BYTES_MAX = 32 * 1024 * 1024, OVERTAKEN = 1 };

/* SplitMix64 (Steele et al. 2014) spreads the seed over the state of xoshiro256** (Blackman, Vigna 2018). */
static uint64_t split_mix(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static uint64_t draw(struct ss_fault_injector *injector) {
    uint64_t *s = injector->random, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

static double unit(uint64_t random) { return (double)(random >> 11) * 0x1p-53; }

void ss_fault_configure(struct ss_fault_injector *injector, const struct ss_fault_settings *settings) {
    const struct ss_fault_settings *s = settings;
    injector->settings = *s;
    injector->active = s->loss > 0 || s->duplicate > 0 || s->reorder > 0 || s->corrupt > 0 || s->delay_ns || s->jitter_ns;
    uint64_t seed = s->seed;
    for (int i = 0; i < 4; i++) injector->random[i] = split_mix(&seed);
}

void ss_fault_free(struct ss_fault_injector *injector) {
    for (uint32_t i = 0; i < injector->waiting_count; i++) free(injector->waiting[i].data);
    free(injector->waiting);
    memset(injector, 0, sizeof *injector);
}

static bool is_earlier(const struct ss_delayed_frame *a, const struct ss_delayed_frame *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void swap(struct ss_delayed_frame *a, struct ss_delayed_frame *b) {
    struct ss_delayed_frame t = *a;
    *a = *b;
    *b = t;
}

static void sift_up(struct ss_fault_injector *injector, uint32_t at) {
    struct ss_delayed_frame *w = injector->waiting;
    for (; at && is_earlier(&w[at], &w[(at - 1) / 2]); at = (at - 1) / 2) swap(&w[at], &w[(at - 1) / 2]);
}

static void sift_down(struct ss_fault_injector *injector, uint32_t at) {
    struct ss_delayed_frame *w = injector->waiting;
    for (;;) {
        uint32_t least = at, left = 2 * at + 1;
        for (uint32_t child = left; child < left + 2 && child < injector->waiting_count; child++)
            if (is_earlier(&w[child], &w[least])) least = child;
        if (least == at) return;
        swap(&w[at], &w[least]);
        at = least;
    }
}

static bool reserve(struct ss_fault_injector *injector, uint32_t length) {
    if (injector->waiting_bytes + length > WAITING_BYTES_MAX) return false;
    if (injector->waiting_count < injector->waiting_capacity) return true;
    uint32_t capacity = injector->waiting_capacity ? injector->waiting_capacity * 2 : 64;
    struct ss_delayed_frame *grown = realloc(injector->waiting, capacity * sizeof *grown);
    if (!grown) return false;
    injector->waiting = grown;
    injector->waiting_capacity = capacity;
    return true;
}

static void wait_until(struct ss_fault_injector *injector, uint64_t due_ns, uint32_t behind, const uint8_t *data,
                       uint32_t length) {
    uint8_t *copy = reserve(injector, length) ? malloc(length ? length : 1) : NULL;
    if (!copy) {
        injector->counters.overflowed++;
        return;
    }
    memcpy(copy, data, length);
    injector->waiting[injector->waiting_count] =
        (struct ss_delayed_frame){due_ns, injector->next_order++, behind, length, copy};
    injector->waiting_bytes += length;
    injector->held_count += behind > 0;
    sift_up(injector, injector->waiting_count++);
}

static struct ss_delayed_frame take(struct ss_fault_injector *injector, uint32_t at) {
    struct ss_delayed_frame frame = injector->waiting[at];
    injector->waiting[at] = injector->waiting[--injector->waiting_count];
    if (at < injector->waiting_count) {
        sift_down(injector, at);
        sift_up(injector, at);
    }
    injector->waiting_bytes -= frame.length;
    injector->held_count -= frame.behind > 0;
    return frame;
}

static void release_frame(struct ss_delayed_frame frame, ss_frame_sink *sink, void *context) {
    sink(context, frame.data, frame.length);
    free(frame.data);
}

static uint32_t oldest_overtaken(const struct ss_fault_injector *injector) {
    uint32_t oldest = injector->waiting_count;
    for (uint32_t i = 0; i < injector->waiting_count; i++)
        if (injector->waiting[i].behind == OVERTAKEN &&
            (oldest == injector->waiting_count || injector->waiting[i].order < injector->waiting[oldest].order))
            oldest = i;
    return oldest;
}

/* Counts that one more frame overtakes the queued reordered frames. Releases those that reached their gap, oldest first. */
static void count_overtaking(struct ss_fault_injector *injector, ss_frame_sink *sink, void *context) {
    for (uint32_t i = 0; i < injector->waiting_count; i++)
        if (injector->waiting[i].behind > OVERTAKEN) injector->waiting[i].behind--;
    for (uint32_t at; (at = oldest_overtaken(injector)) < injector->waiting_count;)
        release_frame(take(injector, at), sink, context);
}

struct fate {
    bool lost, duplicated, reordered, corrupted;
    uint64_t corrupt_at, delay_ns[2];
};

static struct fate draw_fate(struct ss_fault_injector *injector) {
    const struct ss_fault_settings *s = &injector->settings;
    struct fate fate;
    fate.lost = unit(draw(injector)) < s->loss;
    fate.duplicated = unit(draw(injector)) < s->duplicate;
    fate.reordered = unit(draw(injector)) < s->reorder;
    fate.corrupted = unit(draw(injector)) < s->corrupt;
    fate.corrupt_at = draw(injector);
    for (int i = 0; i < 2; i++) {
        double delay = (double)s->delay_ns + (2 * unit(draw(injector)) - 1) * (double)s->jitter_ns;
        fate.delay_ns[i] = delay > 0 ? (uint64_t)delay : 0;
    }
    return fate;
}

static void pass_copy(struct ss_fault_injector *injector, uint64_t now_ns, uint64_t delay_ns, bool reordered,
                      const uint8_t *data, uint32_t length, ss_frame_sink *sink, void *context) {
    const struct ss_fault_settings *s = &injector->settings;
    if (reordered) {
        injector->counters.reordered++;
        uint32_t gap = s->reorder_gap ? s->reorder_gap : 1;
        wait_until(injector, now_ns + delay_ns + s->reorder_hold_ns, OVERTAKEN + gap, data, length);
        return;
    }
    if (delay_ns) {
        injector->counters.delayed++;
        wait_until(injector, now_ns + delay_ns, 0, data, length);
    } else {
        sink(context, data, length);
    }
    if (injector->held_count) count_overtaking(injector, sink, context);
}

void ss_fault_pass(struct ss_fault_injector *injector, uint64_t now_ns, const uint8_t *data, uint32_t length,
                   ss_frame_sink *sink, void *context) {
    if (!injector->active && !injector->held_count) {
        sink(context, data, length);
        return;
    }
    struct fate fate = draw_fate(injector);
    if (fate.lost) {
        injector->counters.lost++;
        return;
    }
    uint8_t *damaged = NULL;
    if (fate.corrupted && length && (damaged = malloc(length))) {
        injector->counters.corrupted++;
        memcpy(damaged, data, length);
        uint64_t bit = fate.corrupt_at % ((uint64_t)length * 8);
        damaged[bit / 8] ^= (uint8_t)(1u << bit % 8);
        data = damaged;
    }
    pass_copy(injector, now_ns, fate.delay_ns[0], fate.reordered, data, length, sink, context);
    if (fate.duplicated) {
        injector->counters.duplicated++;
        pass_copy(injector, now_ns, fate.delay_ns[1], false, data, length, sink, context);
    }
    free(damaged);
}

void ss_fault_release(struct ss_fault_injector *injector, uint64_t now_ns, ss_frame_sink *sink, void *context) {
    while (injector->waiting_count && injector->waiting[0].due_ns <= now_ns) release_frame(take(injector, 0), sink, context);
}

uint64_t ss_fault_next_due(const struct ss_fault_injector *injector) {
    return injector->waiting_count ? injector->waiting[0].due_ns : UINT64_MAX;
}
