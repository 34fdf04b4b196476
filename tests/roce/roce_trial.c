/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Workers in threads on a network without devices (fake_verbs.h), with a controller of their own (fake_controller.h):
 * sums, errors, epochs. Run under sanitizers. A scenario ends with exit code 0, or with a line that says what was wrong. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "check.h"
#include "fake_controller.h"
#include "fake_verbs.h"
#include "worker.h"

struct part {
    pthread_t thread;
    int rank, rounds;
    size_t elements;
    enum nr_dtype dtype;
    enum nr_op op;
    enum nr_error expected;
    double join_seconds, seconds;
    int special; /* 1: rank 0 calls with another size; 2: rank 0 has an infinity; 3: sums reach a rail; 4: rank 0 is late;
                  * 5: as 1, but only in the first call; 6: the job is over for all but rank 0, which begins when they know;
                  * 7: the last rank leaves after its first call, and the others' later ones fail; 8: or go on without it;
                  * 9: in the second call rank 0 has a huge element; 10: half of the ranks have large numbers that the other
                  * half takes away; 11: as 2, but from the second call on; 12: as 3, at the lower rail */
    bool is_gradient; /* sums are approximate from the second call of an epoch on */
    uint64_t epoch_packets;
    uint64_t packets[2]; /* at most, of the first call and of each later one; 0: any number */
    int raw; /* floats are added as they are: any of them, also infinities */
    uint64_t bits; /* of the last sums: the same at all */
    pthread_barrier_t *end; /* no worker leaves before all know how their calls ended */
    bool at_once; /* but each when it is done */
    bool in_step; /* no worker begins a call before all have the sums of the one before */
};

static int32_t whole(size_t i, int rank, int round) {
    return (int32_t)((i * 31 + (size_t)rank * 7 + (size_t)round) % 2001) - 1000;
}
static float real(size_t i, int rank, int round) { return (float)whole(i, rank, round) * ldexpf(1.0f, -(int)(i / 4096)); }
static const float HUGE_ELEMENT = 1e20f;

static float real_of(const struct part *p, size_t i, int rank, int round) {
    float sign = rank < 2 ? 1 : -1;
    if (p->special == 9 && rank == 0 && round == 1 && i == p->elements / 2) return HUGE_ELEMENT;
    if (p->special != 10) return real(i, rank, round);
    return (sign * 1.2f * (float)whole(7 * i + 5, 0, 0) + (float)whole(i, 0, round) / 4) * ldexpf(1.0f, -(int)(i / 4096));
}

/* Of a sum of quarter: six standard deviations (docs/results/gradients.md), or what block leaves where that is more. */
static double allowed_of_gradient(const struct part *p, size_t i, int workers, int round) {
    bool is_beside_huge = p->special == 9 && round == 1 && i / 4096 == p->elements / 2 / 4096;
    double range = 1.7 * workers * 600 * ldexp(1, -(int)(i / 4096));
    return 6 * sqrt((workers + 1) / 10800.0) * range + (is_beside_huge ? 1e-6 * HUGE_ELEMENT : 0);
}

static void *work(void *given) {
    struct part *p = given;
    char path[128], agent[160];
    fake_controller_path(path, sizeof path, p->rank);
    snprintf(agent, sizeof agent, "unix:%s", path);
    struct nr_options options = {.agent = agent, .epoch_packets = p->epoch_packets};
    struct nr_worker *worker;
    enum nr_error joined = nr_join(&worker, &options, p->join_seconds);
    CHECK(joined == NR_OK, "rank %d does not join: %s", p->rank, nr_error_message(worker));
    void *array = malloc(4 * p->elements + 4), *before = malloc(4 * p->elements + 4);
    size_t count = p->elements;
    for (int round = 0; round < p->rounds; round++) {
        if (p->in_step) pthread_barrier_wait(p->end);
        bool differs = p->rank == 0 && (p->special == 1 || (p->special == 5 && round == 0));
        count = p->elements - (differs ? 300 : 0);
        enum nr_error expected = p->special == 5 && round > 0 ? NR_OK : p->expected;
        if (p->special == 7 && round > 0) expected = NR_LEFT;
        for (size_t i = 0; i < count; i++) {
            if (p->dtype == NR_INT32)
                ((int32_t *)array)[i] = p->special == 3    ? INT32_MAX / 2
                                        : p->special == 12 ? INT32_MIN / 2
                                                           : whole(i, p->rank, round);
            else
                ((float *)array)[i] = real_of(p, i, p->rank, round);
        }
        bool has_infinity = p->special == 2 || (p->special == 11 && round > 0);
        if (p->special == 11 && round == 0) expected = NR_OK;
        if (has_infinity && p->rank == 0) ((float *)array)[count / 2] = INFINITY;
        memcpy(before, array, 4 * count);
        if (p->special == 4 && p->rank == 0) usleep(300000);
        if (p->special == 6 && p->rank == 0) pthread_barrier_wait(p->end);
        if (p->special == 6 && p->rank == 0) expected = NR_TIMEOUT, p->seconds = 1;
        uint64_t packets = nr_statistics(worker).packets;
        enum nr_error error = p->is_gradient ? nr_all_reduce_gradient(worker, array, count, p->op, p->seconds)
                                             : nr_all_reduce(worker, array, count, p->dtype, p->op, p->seconds);
        packets = nr_statistics(worker).packets - packets;
        if (p->packets[round > 0]) CHECK(packets <= p->packets[round > 0], "%d packets in round %d", (int)packets, round);
        CHECK(error == expected, "rank %d round %d: error %d: %s", p->rank, round, error, nr_error_message(worker));
        if (error == NR_LEFT) CHECK(strcmp(nr_left_hosts(worker), "h4") == 0, "%s left", nr_left_hosts(worker));
        int workers = nr_workers(worker);
        double divisor = p->op == NR_AVERAGE ? workers : 1;
        if (error != NR_OK) CHECK(memcmp(array, before, 4 * count) == 0, "rank %d: an error touched the array", p->rank);
        for (size_t i = 0; i < count && error == NR_OK; i++) {
            double sum = 0, most = 0;
            for (int r = 0; r < workers; r++)
                sum += p->dtype == NR_INT32 ? whole(i, r, round) : (double)real_of(p, i, r, round), most = 1024;
            if (has_infinity && i == count / 2) sum = INFINITY;
            if (p->raw) most = fabs(sum);
            if (p->dtype == NR_INT32) {
                CHECK(((int32_t *)array)[i] == (int32_t)sum, "rank %d element %zu is wrong", p->rank, i);
            } else {
                if (isinf(sum)) CHECK(((float *)array)[i] == sum, "rank %d element %zu is no infinity", p->rank, i);
                if (isinf(sum)) continue;
                double off = fabs(((float *)array)[i] * divisor - sum),
                       allowed = workers * ldexp(most, 3 - 31) + fabs(sum) * 1e-6;
                if (p->is_gradient && round > 0) allowed = allowed_of_gradient(p, i, workers, round);
                CHECK(off <= allowed, "rank %d element %zu is off by %g", p->rank, i, off);
            }
        }
        if (p->special == 6 && p->rank > 0) pthread_barrier_wait(p->end);
        if (error == NR_LEFT) continue;
        p->bits = 0;
        for (size_t i = 0; i < count; i++) p->bits = 31 * p->bits + ((uint32_t *)array)[i];
    }
    free(array);
    free(before);
    if (!p->at_once) pthread_barrier_wait(p->end);
    double left_at = nr_now();
    nr_leave(worker);
    CHECK(nr_now() - left_at < 25, "rank %d waits on leaving although all others have left", p->rank);
    return NULL;
}

static void all_work(struct part plan, int workers) {
    struct part parts[MOST];
    pthread_barrier_t end;
    bool one_leaves = plan.special == 7 || plan.special == 8;
    int stay = one_leaves ? workers - 1 : workers;
    pthread_barrier_init(&end, NULL, (unsigned)stay);
    plan.end = &end;
    for (int r = 0; r < workers; r++) {
        parts[r] = plan;
        parts[r].rank = r;
        if (r >= stay) parts[r].rounds = 1, parts[r].at_once = true;
        pthread_create(&parts[r].thread, NULL, work, &parts[r]);
    }
    for (int r = 0; r < workers; r++) pthread_join(parts[r].thread, NULL);
    pthread_barrier_destroy(&end);
    pthread_join(control.thread, NULL);
    for (int w = 0; w < workers; w++) close(control.listeners[w]);
    for (int r = 1; r < stay && plan.expected == NR_OK; r++) CHECK(parts[r].bits == parts[0].bits, "not the same bits");
    CHECK(fake_left_over() == 0, "%d things are left over", fake_left_over());
}

int main(int count, char **words) {
    CHECK(count == 3, "roce_trial SCENARIO FOLDER");
    const char *scenario = words[1];
    control.folder = words[2];
    struct part plan = {
        .rounds = 3, .elements = 200000, .dtype = NR_INT32, .expected = NR_OK, .join_seconds = 20, .seconds = 30};
    int workers = 4, trees = 1, window = 512;
    enum fault fault = FAULT_NONE;
    const char *numerics = "integer";
    int epochs = 0; /* as many must there have been; 0: any number */
    if (strcmp(scenario, "floats") == 0) {
        numerics = "block", plan.dtype = NR_FLOAT32, plan.op = NR_AVERAGE;
    } else if (strncmp(scenario, "quarter", 7) == 0) {
        numerics = "quarter", plan.dtype = NR_FLOAT32, plan.is_gradient = true;
        if (strcmp(scenario, "quarter") == 0) plan.op = NR_AVERAGE, plan.packets[0] = 800, plan.packets[1] = 205;
        if (strcmp(scenario, "quarter-exact") == 0) plan.is_gradient = false;
        if (strcmp(scenario, "quarter-trees") == 0) trees = 3, window = 16, workers = 3, plan.elements = 70001;
        if (strcmp(scenario, "quarter-huge") == 0) plan.special = 9, plan.packets[1] = 230;
        if (strcmp(scenario, "quarter-saturated") == 0) plan.special = 10;
        if (strcmp(scenario, "quarter-infinity") == 0) plan.special = 11, plan.expected = NR_NUMBERS;
        if (strcmp(scenario, "quarter-given") == 0) fault = FAULT_SOME; /* at the end of the second call */
    } else if (strcmp(scenario, "float32") == 0) {
        numerics = "float32", plan.dtype = NR_FLOAT32, plan.op = NR_AVERAGE, plan.raw = 1, plan.special = 2;
    } else if (strcmp(scenario, "given-float32") == 0) {
        fault = FAULT_SOME, numerics = "float32", plan.dtype = NR_FLOAT32, plan.raw = 1, plan.special = 2;
    } else if (strcmp(scenario, "raw-float32") == 0) {
        fault = FAULT_RAW, numerics = "float32", plan.dtype = NR_FLOAT32, plan.raw = 1;
    } else if (strcmp(scenario, "trees") == 0) {
        trees = 3, window = 16, workers = 3, plan.elements = 70001;
    } else if (strcmp(scenario, "few") == 0) {
        plan.elements = 1, workers = 2, window = 8, numerics = "block", plan.dtype = NR_FLOAT32;
    } else if (strcmp(scenario, "none") == 0) {
        plan.elements = 0, workers = 2;
    } else if (strcmp(scenario, "raw") == 0) {
        fault = FAULT_RAW;
    } else if (strcmp(scenario, "break") == 0) {
        fault = FAULT_BREAK, numerics = "block", plan.dtype = NR_FLOAT32;
    } else if (strcmp(scenario, "given") == 0) {
        fault = FAULT_SOME;
    } else if (strcmp(scenario, "unheard") == 0) {
        fault = FAULT_UNHEARD, plan.at_once = true, plan.seconds = 5;
    } else if (strcmp(scenario, "worn-out") == 0) { /* each call has 788 packets */
        plan.epoch_packets = 1000, plan.in_step = true, epochs = plan.rounds;
    } else if (strcmp(scenario, "worn-out-in-a-call") == 0) { /* of the last worker: it may have to be given the sums */
        plan.epoch_packets = 1700, epochs = 2;
    } else if (strcmp(scenario, "broken-with-sums") == 0) { /* all have them: nothing is asked for again */
        fault = FAULT_BEHIND;
    } else if (strcmp(scenario, "unsent") == 0) {
        fault = FAULT_UNSENT, plan.at_once = true, plan.seconds = 10, control.send_again = workers - 1;
    } else if (strcmp(scenario, "unsent-without-agent") == 0) {
        fault = FAULT_UNSENT, plan.at_once = true, plan.seconds = 10, control.send_again = workers - 1, control.cut = true;
    } else if (strcmp(scenario, "late") == 0) {
        plan.special = 4, plan.elements = 1000;
    } else if (strcmp(scenario, "mismatch") == 0) {
        plan.special = 1, plan.rounds = 2, plan.expected = NR_MISMATCH;
    } else if (strcmp(scenario, "mismatch-once") == 0) {
        plan.special = 5, plan.rounds = 3, plan.expected = NR_MISMATCH;
    } else if (strcmp(scenario, "mismatch-and-fault") ==
               0) { /* seen by one worker alone; the epoch in which it tells ends, too */
        fault = FAULT_SOME, plan.special = 5, plan.rounds = 3, plan.expected = NR_MISMATCH, control.short_epoch = 2;
        plan.elements = 300; /* worker 0 has none in its first call: one message, so that it sees the sum before the break */
    } else if (strcmp(scenario, "over-in-a-call") == 0) { /* what they sent is added up behind it */
        plan.special = 6, plan.rounds = 1, plan.expected = NR_JOB_ENDED, control.ends_after = 6 * workers;
    } else if (strcmp(scenario, "left") == 0) {
        plan.special = 7, control.departure = FINAL, plan.seconds = 10;
    } else if (strcmp(scenario, "left-before-it-was-given") == 0) { /* the others lack the sum, which the first one has */
        plan.special = 7, control.departure = FINAL, fault = FAULT_SOME, plan.seconds = 10;
    } else if (strcmp(scenario, "left-before-one-saw-what-it-was-given") == 0) { /* the rest is in its next call */
        plan.special = 7, control.departure = FINAL, control.releases = true, fault = FAULT_SOME, plan.seconds = 10;
        fake_hold(2, 11); /* its last sum of the first call: it has sent all of it by then */
    } else if (strcmp(scenario, "left-and-continued") == 0) {
        plan.special = 8, control.departure = CONTINUE, plan.seconds = 10;
    } else if (strcmp(scenario, "left-and-continued-before-it-was-given") ==
               0) { /* a sum of all, given in an epoch of the rest */
        plan.special = 8, control.departure = CONTINUE, control.awaits_leave = true, fault = FAULT_ENDS, plan.seconds = 10;
    } else if (strcmp(scenario, "left-while-the-rest-computes") == 0) {
        plan.special = 8, control.departure = CONTINUE, plan.seconds = 10, plan.rounds = 1, epochs = 1;
    } else if (strcmp(scenario, "infinity") == 0) {
        plan.special = 2, plan.rounds = 2, plan.expected = NR_NUMBERS, numerics = "block", plan.dtype = NR_FLOAT32;
    } else if (strcmp(scenario, "rail") == 0) {
        plan.special = 3, plan.rounds = 2, plan.expected = NR_OVERFLOW;
    } else if (strcmp(scenario, "given-rail") == 0) {
        fault = FAULT_SOME, plan.special = 3, plan.rounds = 2, plan.expected = NR_OVERFLOW;
    } else if (strcmp(scenario, "low-rail") == 0) {
        plan.special = 12, plan.rounds = 2, plan.expected = NR_OVERFLOW;
    } else if (strcmp(scenario, "given-low-rail") == 0) {
        fault = FAULT_SOME, plan.special = 12, plan.rounds = 2, plan.expected = NR_OVERFLOW;
    } else if (strcmp(scenario, "given-infinity") == 0) {
        fault = FAULT_SOME, plan.special = 2, plan.rounds = 2, plan.expected = NR_NUMBERS;
        numerics = "block", plan.dtype = NR_FLOAT32;
    } else {
        CHECK(strcmp(scenario, "integers") == 0, "no scenario %s", scenario);
    }
    /* a call of 200,000 elements is five messages with data and one more, of floats three before: `given` breaks at the
     * last message of the first call */
    bool some = fault == FAULT_SOME || fault == FAULT_ENDS;
    bool last = fault == FAULT_UNHEARD || fault == FAULT_UNSENT || fault == FAULT_BEHIND; /* message of the last call */
    fake_start(workers, fault,
               last                                 ? 17
               : control.short_epoch                ? 0
               : !some                              ? 2
               : plan.is_gradient                   ? 11
               : plan.dtype == NR_INT32 || plan.raw ? 5
                                                    : 8);
    if (plan.raw) fake_floats();
    fake_controller_start(workers, trees, window, numerics);
    all_work(plan, workers);
    CHECK(fault == FAULT_NONE || last || control.epoch > 1, "no new epoch");
    CHECK(epochs == 0 || control.epoch == epochs, "%d epochs", control.epoch);
    CHECK(!last || control.epoch == 1, "a new epoch behind the last sum");
    bool by_chance = plan.expected == NR_MISMATCH || (plan.epoch_packets && !plan.in_step) ||
                     (control.departure == CONTINUE && !control.awaits_leave); /* a worker may be ahead as the epoch ends */
    CHECK(by_chance || some == control.gave, "sums were given %d", control.gave);
    return 0;
}
