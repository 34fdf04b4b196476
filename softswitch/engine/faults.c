/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "faults.h"

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

static uint64_t draw(struct fault_line *line) {
    uint64_t *s = line->random, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

static double unit(uint64_t random) { return (double)(random >> 11) * 0x1p-53; }

void fault_configure(struct fault_line *line, const struct fault_settings *settings) {
    const struct fault_settings *s = settings;
    line->settings = *s;
    line->active = s->loss > 0 || s->duplicate > 0 || s->reorder > 0 || s->corrupt > 0 || s->delay_ns || s->jitter_ns;
    uint64_t seed = s->seed;
    for (int i = 0; i < 4; i++) line->random[i] = split_mix(&seed);
}

void fault_free(struct fault_line *line) {
    for (uint32_t i = 0; i < line->waiting_count; i++) free(line->waiting[i].data);
    free(line->waiting);
    memset(line, 0, sizeof *line);
}

static bool sooner(const struct waiting_frame *a, const struct waiting_frame *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void swap(struct waiting_frame *a, struct waiting_frame *b) {
    struct waiting_frame t = *a;
    *a = *b;
    *b = t;
}

static void sift_up(struct fault_line *line, uint32_t at) {
    struct waiting_frame *w = line->waiting;
    for (; at && sooner(&w[at], &w[(at - 1) / 2]); at = (at - 1) / 2) swap(&w[at], &w[(at - 1) / 2]);
}

static void sift_down(struct fault_line *line, uint32_t at) {
    struct waiting_frame *w = line->waiting;
    for (;;) {
        uint32_t least = at, left = 2 * at + 1;
        for (uint32_t child = left; child < left + 2 && child < line->waiting_count; child++)
            if (sooner(&w[child], &w[least])) least = child;
        if (least == at) return;
        swap(&w[at], &w[least]);
        at = least;
    }
}

static bool make_room(struct fault_line *line, uint32_t length) {
    if (line->waiting_bytes + length > WAITING_BYTES_MAX) return false;
    if (line->waiting_count < line->waiting_room) return true;
    uint32_t room = line->waiting_room ? line->waiting_room * 2 : 64;
    struct waiting_frame *grown = realloc(line->waiting, room * sizeof *grown);
    if (!grown) return false;
    line->waiting = grown;
    line->waiting_room = room;
    return true;
}

static void wait_until(struct fault_line *line, uint64_t due_ns, uint32_t behind, const uint8_t *data,
                       uint32_t length) {
    uint8_t *copy = make_room(line, length) ? malloc(length ? length : 1) : NULL;
    if (!copy) {
        line->counters.overflowed++;
        return;
    }
    memcpy(copy, data, length);
    line->waiting[line->waiting_count] = (struct waiting_frame){due_ns, line->next_order++, behind, length, copy};
    line->waiting_bytes += length;
    line->held_count += behind > 0;
    sift_up(line, line->waiting_count++);
}

static struct waiting_frame take(struct fault_line *line, uint32_t at) {
    struct waiting_frame frame = line->waiting[at];
    line->waiting[at] = line->waiting[--line->waiting_count];
    if (at < line->waiting_count) {
        sift_down(line, at);
        sift_up(line, at);
    }
    line->waiting_bytes -= frame.length;
    line->held_count -= frame.behind > 0;
    return frame;
}

static void let_out(struct waiting_frame frame, fault_sink *sink, void *context) {
    sink(context, frame.data, frame.length);
    free(frame.data);
}

static uint32_t oldest_overtaken(const struct fault_line *line) {
    uint32_t oldest = line->waiting_count;
    for (uint32_t i = 0; i < line->waiting_count; i++)
        if (line->waiting[i].behind == OVERTAKEN &&
            (oldest == line->waiting_count || line->waiting[i].order < line->waiting[oldest].order))
            oldest = i;
    return oldest;
}

/* Another frame has overtaken the reordered ones that wait; those that had their number come out, oldest first. */
static void count_overtaking(struct fault_line *line, fault_sink *sink, void *context) {
    for (uint32_t i = 0; i < line->waiting_count; i++)
        if (line->waiting[i].behind > OVERTAKEN) line->waiting[i].behind--;
    for (uint32_t at; (at = oldest_overtaken(line)) < line->waiting_count;) let_out(take(line, at), sink, context);
}

struct fate {
    bool lost, duplicated, reordered, corrupted;
    uint64_t corrupt_at, delay_ns[2];
};

static struct fate draw_fate(struct fault_line *line) {
    const struct fault_settings *s = &line->settings;
    struct fate fate;
    fate.lost = unit(draw(line)) < s->loss;
    fate.duplicated = unit(draw(line)) < s->duplicate;
    fate.reordered = unit(draw(line)) < s->reorder;
    fate.corrupted = unit(draw(line)) < s->corrupt;
    fate.corrupt_at = draw(line);
    for (int i = 0; i < 2; i++) {
        double delay = (double)s->delay_ns + (2 * unit(draw(line)) - 1) * (double)s->jitter_ns;
        fate.delay_ns[i] = delay > 0 ? (uint64_t)delay : 0;
    }
    return fate;
}

static void pass_copy(struct fault_line *line, uint64_t now_ns, uint64_t delay_ns, bool reordered,
                      const uint8_t *data, uint32_t length, fault_sink *sink, void *context) {
    const struct fault_settings *s = &line->settings;
    if (reordered) {
        line->counters.reordered++;
        uint32_t gap = s->reorder_gap ? s->reorder_gap : 1;
        wait_until(line, now_ns + delay_ns + s->reorder_hold_ns, OVERTAKEN + gap, data, length);
        return;
    }
    if (delay_ns) {
        line->counters.delayed++;
        wait_until(line, now_ns + delay_ns, 0, data, length);
    } else {
        sink(context, data, length);
    }
    if (line->held_count) count_overtaking(line, sink, context);
}

void fault_pass(struct fault_line *line, uint64_t now_ns, const uint8_t *data, uint32_t length, fault_sink *sink,
                void *context) {
    if (!line->active && !line->held_count) {
        sink(context, data, length);
        return;
    }
    struct fate fate = draw_fate(line);
    if (fate.lost) {
        line->counters.lost++;
        return;
    }
    uint8_t *damaged = NULL;
    if (fate.corrupted && length && (damaged = malloc(length))) {
        line->counters.corrupted++;
        memcpy(damaged, data, length);
        uint64_t bit = fate.corrupt_at % ((uint64_t)length * 8);
        damaged[bit / 8] ^= (uint8_t)(1u << bit % 8);
        data = damaged;
    }
    pass_copy(line, now_ns, fate.delay_ns[0], fate.reordered, data, length, sink, context);
    if (fate.duplicated) {
        line->counters.duplicated++;
        pass_copy(line, now_ns, fate.delay_ns[1], false, data, length, sink, context);
    }
    free(damaged);
}

void fault_release(struct fault_line *line, uint64_t now_ns, fault_sink *sink, void *context) {
    while (line->waiting_count && line->waiting[0].due_ns <= now_ns) let_out(take(line, 0), sink, context);
}

uint64_t fault_next_due(const struct fault_line *line) {
    return line->waiting_count ? line->waiting[0].due_ns : UINT64_MAX;
}
