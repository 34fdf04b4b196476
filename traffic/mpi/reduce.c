/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

static const struct nm_blocks TO_ALL = {NF_TO_ALL, 0, NULL};

enum { GATHERED_BYTES = 32768 /* of all hosts: more is faster by algorithms of the MPI library */ };

static struct nm_result failed(const char *message) {
    struct nm_result result = {NM_FAILED, ""};
    snprintf(result.message, sizeof result.message, "%.*s", NM_MESSAGE_BYTES - 1, message);
    return result;
}

/* Unsigned: sums of integers that do not fit wrap, and so does the sum of the hosts' sums. */
#define ADD(type) \
    for (size_t i = 0; i < elements; i++) ((type *)to)[i] += ((const type *)from)[i]

static void add(void *restrict to, const void *restrict from, size_t elements, enum nf_dtype dtype) {
    if (dtype == NF_FLOAT32)
        ADD(float);
    else if (dtype == NF_FLOAT64)
        ADD(double);
    else if (dtype == NF_INT64)
        ADD(uint64_t);
    else
        ADD(uint32_t);
}

static void combine(const struct nm_reduction *r, void *to, void *from, size_t elements) {
    if (r->op == MPI_SUM)
        add(to, from, elements, r->dtype);
    else
        PMPI_Reduce_local(from, to, (int)elements, r->datatype, r->op);
}

int nm_can_gather(size_t elements, enum nf_dtype dtype) {
    return elements <= GATHERED_BYTES / (size_t)nf_itemsize(dtype) / (size_t)nm_world.host_count;
}

/* At a rank that is not its host's leader. */
static struct nm_result reduce_by_leader(const struct nm_post *post, const void *input, void *output, size_t bytes) {
    struct nm_world *w = &nm_world;
    if (input) memcpy(nm_host_area(w->host, w->host_rank), input, bytes);
    struct nm_result result = nm_host_call(w->host, w->host_rank, post);
    if (result.status == NM_DONE && output) memcpy(output, nm_host_area(w->host, 0), bytes);
    nm_host_release(w->host, w->host_rank);
    return result;
}

/* Reduces the inputs of this host's other ranks. 0: a rank made another call; -1: a rank has ended. */
static int add_local(const struct nm_reduction *r, const struct nm_post *own, void *to) {
    struct nm_world *w = &nm_world;
    int agree = 1;
    for (int i = 0; i < r->communicator->local_count; i++) {
        int rank = r->communicator->local[i];
        const struct nm_post *post = nm_host_await(w->host, rank);
        if (!post) return -1;
        if (post->context != own->context || post->elements != own->elements || post->dtype != own->dtype)
            agree = 0;
        else if (post->has_input)
            combine(r, to, nm_host_area(w->host, rank), (size_t)own->elements);
    }
    return agree;
}

/* The host's values in a field of their own, among zeros. Elements are whole words. */
static struct nf_outcome reduce_gathered(const struct nm_reduction *r, void *array, size_t elements, int64_t context) {
    struct nm_world *w = &nm_world;
    struct nf_outcome outcome = {.status = NF_NO_MEMORY, .message = "no memory"};
    size_t bytes = elements * (size_t)nf_itemsize(r->dtype);
    char *fields = calloc((size_t)w->host_count, bytes);
    if (!fields) return outcome;
    memcpy(fields + (size_t)w->host_number * bytes, array, bytes);
    size_t words = (size_t)w->host_count * bytes / 4;
    outcome = nm_member_reduce(w->member, fields, words, NF_INT32, context, r->kind, TO_ALL);
    if (outcome.status == NF_DONE) {
        memcpy(array, fields, bytes);
        for (int i = 1; i < w->host_count; i++) combine(r, array, fields + (size_t)i * bytes, elements);
    }
    free(fields);
    return outcome;
}

/* Only the owner of a block finds that an integer does not fit. All hosts have to make the call by the MPI library then. */
static void share_overflow(struct nf_outcome *outcome, int64_t context, enum nf_kind kind) {
    int32_t misfits = outcome->status == NF_SUM_OVERFLOW;
    if (!misfits && outcome->status != NF_DONE) return;
    struct nf_outcome shared = nm_member_reduce(nm_world.member, &misfits, 1, NF_INT32, ~context, kind, TO_ALL);
    if (shared.status != NF_DONE)
        *outcome = shared;
    else if (misfits)
        outcome->status = NF_SUM_OVERFLOW;
}

static int is_integer(enum nf_dtype dtype) { return dtype == NF_INT32 || dtype == NF_INT64; }

static struct nf_outcome reduce_by_nodes(const struct nm_reduction *r, void *array, size_t elements, int64_t context) {
    struct nf_outcome outcome = nm_member_reduce(nm_world.member, array, elements, r->dtype, context, r->kind, r->blocks);
    if (r->blocks.form == NF_SCATTER && is_integer(r->dtype)) share_overflow(&outcome, context, r->kind);
    return outcome;
}

static struct nm_result reduce_over_hosts(const struct nm_reduction *r, void *array, size_t elements, int agree) {
    /* Ranks of this host disagree: a context that no other host has lets all hosts see it. */
    int64_t context = agree ? r->context : r->context ^ (INT64_C(1) << 61) ^ (int64_t)(nm_world.rank + 1);
    struct nf_outcome outcome =
        r->is_gathered ? reduce_gathered(r, array, elements, context) : reduce_by_nodes(r, array, elements, context);
    if (outcome.status == NF_SUM_OVERFLOW) return (struct nm_result){NM_UNFIT, ""};
    return outcome.status == NF_DONE ? (struct nm_result){NM_DONE, ""} : failed(outcome.message);
}

struct nm_result nm_reduce(const struct nm_reduction *r, const void *input, void *output, size_t elements) {
    struct nm_world *w = &nm_world;
    size_t bytes = elements * (size_t)nf_itemsize(r->dtype);
    struct nm_post post = {r->context, (int64_t)elements, r->dtype, input != NULL};
    if (!w->member) return reduce_by_leader(&post, input, output, bytes);
    int local = r->communicator->local_count;
    void *scratch = !local && !output ? malloc(bytes + 1) : NULL; /* without elements, too */
    void *array = local ? nm_host_area(w->host, 0) : output ? output : scratch;
    if (!array) return failed("no memory");
    if (local) nm_host_await_release(w->host);
    if (!input)
        memset(array, 0, bytes);
    else if (array != input)
        memcpy(array, input, bytes);
    struct nm_result result;
    int agree = add_local(r, &post, array);
    if (agree < 0) {
        result = failed("a rank of this host has ended");
        nm_member_fail(w->member, result.message);
    } else {
        result = reduce_over_hosts(r, array, elements, agree);
    }
    for (int i = 0; i < local; i++) nm_host_finish(w->host, r->communicator->local[i], &result);
    if (result.status == NM_DONE && output && array != output) memcpy(output, array, bytes);
    free(scratch);
    return result;
}
