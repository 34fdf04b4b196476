/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Throws random and nearly right packets, calls, epochs and times at the core, as test_engine_sanitized.py builds it:
 * under the address and undefined-behavior sanitizers. Arguments: seed, steps. A reflector that is right most of the time
 * lets calls finish. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/core.h"

enum { CALLS = 4, ELEMENTS = 1200, OUT = 64 };

static uint64_t state;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static int64_t below(int64_t n) { return (int64_t)(next() % (uint64_t)n); }

static int quorums; /* every third seed's job has one */
static int has_targets; /* and every second of the others */

static struct nf_assignment epoch_of(int64_t epoch) {
    struct nf_assignment a = {.epoch = epoch, .lanes = 4 + 4 * below(8), .workers = 1 + below(2), .rounds = 1 + below(40)};
    if (quorums) {
        a.lanes = 32;
        a.allow_newcomers = below(3) == 0;
        a.quorum = a.allow_newcomers ? 0 : 1 + below(a.workers);
        a.quorum_deadline = 0.002;
    }
    has_targets = has_targets && !quorums;
    if (has_targets) {
        a.lanes = 32;
        a.targets = below(4) ? NF_TARGETS : NF_TARGETS_PAUSED;
    }
    a.congestion = below(3);
    a.wire_bytes = 100;
    a.tree_count = 1 + below(3);
    a.rate_mbps = below(3) ? 0 : 5;
    a.timing = (struct nf_timing){0.05, 0.04, 1, 0.0005, 0.025, 0.004, 0.001};
    for (int64_t i = 0; i < a.tree_count; i++) {
        int64_t slots = 2 << below(5);
        a.trees[i] = (struct nf_tree_spec){.tree = 40 + i, .child = i, .slots = slots, .window = 1 + below(slots / 2)};
        a.trees[i].endpoint = i;
        a.trees[i].share = 1.0 / (double)a.tree_count;
        a.trees[i].cumulative_share = (double)(i + 1) / (double)a.tree_count;
        strcpy(a.trees[i].destination, "10.0.0.1");
    }
    return a;
}

static void fill(uint8_t *array) {
    for (int64_t i = 0; i < 8 * ELEMENTS; i++) array[i] = (uint8_t)next(); /* all floats there are, NaN and infinities too */
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    state = 0x9E3779B97F4A7C15u + (uint64_t)atoll(argv[1]);
    quorums = atoll(argv[1]) % 3 == 2;
    has_targets = atoll(argv[1]) % 2 == 1;
    int64_t steps = atoll(argv[2]), done = 0, failed = 0;
    struct nf_core *core = nf_core_create();
    struct nf_call *calls[CALLS] = {0};
    static uint8_t arrays[CALLS][8 * ELEMENTS] __attribute__((aligned(8)));
    static float remainders[CALLS][ELEMENTS];
    static uint8_t packet[NF_HEADER_BYTES + 4 * NF_LANES_MAX + 8] __attribute__((aligned(8)));
    struct nf_out out[OUT];
    int64_t epoch = 1;
    struct nf_assignment a = epoch_of(epoch);
    int64_t lanes = a.lanes; /* of a job, for good */
    double now = 0;
    if (nf_core_assign(core, &a, now)) return 3;
    for (int64_t step = 0; step < steps; step++) {
        int64_t chosen = below(CALLS);
        if (calls[chosen] && nf_core_outcome(calls[chosen])->status != NF_PENDING) {
            done += nf_core_outcome(calls[chosen])->status == NF_DONE;
            failed += nf_core_outcome(calls[chosen])->status != NF_DONE;
            nf_core_release(core, calls[chosen]);
            calls[chosen] = NULL;
        }
        if (!calls[chosen] && below(4) == 0) {
            fill(arrays[chosen]);
            static const int64_t schemes[] = {NF_BLOCK_FLOAT, NF_FIXED_SCALE, NF_INTEGER, NF_PACKED_HALF, NF_ROTATED_QUARTER};
            struct nf_request r = {.array = arrays[chosen],
                                   .elements = below(2) ? ELEMENTS : 1 + below(ELEMENTS),
                                   .dtype = below(NF_DTYPES),
                                   .scheme = schemes[below(5)],
                                   .bits = below(40),
                                   .deadline = now + 5};
            if (r.scheme == NF_ROTATED_QUARTER) { /* of one profile, so that ranges are predicted */
                r.elements = ELEMENTS;
                r.dtype = NF_FLOAT32;
                r.bits = 0;
                r.follows_all = below(2);
                r.is_warm_up = below(10) == 0;
                if (below(2)) r.remainder = remainders[chosen];
            }
            if (quorums && (r.dtype == NF_INT32 || r.dtype == NF_INT64)) r.dtype = NF_FLOAT32; /* as its workers refuse them */
            r.op = r.dtype == NF_INT32 || r.dtype == NF_INT64 ? NF_SUM : below(2);
            struct nf_block blocks[] = {{r.elements / 2, below(2)}, {r.elements - r.elements / 2, below(3)}};
            if (has_targets && r.scheme != NF_ROTATED_QUARTER && below(3)) {
                r.form = below(2) ? NF_SCATTER : NF_GATHER;
                if (r.form == NF_GATHER) r.dtype = NF_INT32, r.op = NF_SUM;
                r.blocks = blocks;
                r.block_count = 2;
            }
            calls[chosen] = nf_core_submit(core, &r);
        }
        struct nf_totals totals = nf_core_totals(core);
        if (below(2000) == 0 || ((totals.unusable_epoch || totals.has_failed_call) && below(10) == 0)) {
            a = epoch_of(epoch = epoch % 4095 + 1);
            a.lanes = lanes;
            if (nf_core_assign(core, &a, now)) return 3;
        }
        if (below(3000) == 0) nf_core_fail_epoch_waiters(core);
        if (below(20000) == 0) nf_core_abort(core);
        nf_core_process(core, now);
        int64_t size = NF_HEADER_BYTES + 4 * lanes, count = nf_core_send(core, out, 1 + below(OUT), now);
        int64_t generation = nf_core_generation(core);
        for (int64_t i = 0; i < count && nf_core_generation(core) == generation; i++) {
            if (below(10) == 0) continue;
            memcpy(packet, out[i].packet, (size_t)out[i].length);
            int64_t sent = below(20) ? out[i].length : size; /* of a short packet the lanes are those of another one */
            packet[0] = VERSION_KIND_RESULT;
            int both = a.workers > 1 && (!quorums || below(4));
            if (both && quorums) packet[13] = (uint8_t)(2 * packet[13]); /* the count */
            if (both) /* the other one sends the same */
                for (int64_t k = NF_HEADER_BYTES; k < size; k += 4) {
                    uint32_t lane;
                    memcpy(&lane, packet + k, 4);
                    lane = __builtin_bswap32(__builtin_bswap32(lane) * 2);
                    memcpy(packet + k, &lane, 4);
                }
            if (below(50) == 0) packet[below(NF_HEADER_BYTES)] ^= (uint8_t)(1 << below(8));
            if (below(500) == 0) packet[below(size)] = (uint8_t)next();
            if (has_targets && below(10) == 0) sent = NF_HEADER_BYTES;
            int64_t length = below(100) ? sent : below(size + 8);
            nf_core_receive(core, below(30) ? out[i].endpoint : below(4), packet, length, below(9) == 0, now);
        }
        for (int64_t k = 0; k < 64; k++) packet[k] = (uint8_t)next();
        if (below(10) == 0) nf_core_receive(core, below(3), packet, size, 0, now);
        now += below(3) ? 1e-5 * (double)below(100) : 0;
        double due = nf_core_next_deadline(core, now);
        if (!count && due < NF_UNKNOWN && due > now) now = due;
    }
    printf("%lld calls done, %lld failed\n", (long long)done, (long long)failed);
    nf_core_abort(core);
    for (int64_t i = 0; i < CALLS; i++)
        if (calls[i]) nf_core_release(core, calls[i]);
    nf_core_destroy(core);
    return done > 0 && failed > 0 ? 0 : 1;
}
