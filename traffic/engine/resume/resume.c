/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "resume.h"

void resume_send_call_byte(struct resume_number *n, const struct resume_worker *w) {
    int64_t shift = 8 * (CALL_ID_BYTES - 1 - n->byte);
    n->byte_sent = w->next_call >> (shift + 8) == n->newest_call ? w->next_call >> shift & 0xFF : 0;
}

void resume_take_call_byte(struct resume_number *n) {
    n->newest_call = n->newest_call << 8 | n->byte_max;
    n->byte++;
}

/* No worker starts a call before it has the results of the one `depth` before, so votes are told apart modulo this. */
static int64_t modulus(const struct resume_terms *terms) { return 2 * terms->depth + 1; }

/* A worker that started the call in an earlier epoch may be given its result; any other worker's call is a new one, whose result
 * no worker may have. A ready worker has the result of its call, and makes it again in an epoch where none can vote so. */
enum vote { STARTED, NEW, READY, VOTES };

static int64_t vote_lane(const struct resume_terms *terms, int64_t call, enum vote vote) {
    return (call + modulus(terms)) % modulus(terms) + vote * modulus(terms);
}

static int64_t votes_for(const struct resume_terms *terms, const int64_t *calls, int64_t call) {
    return calls[vote_lane(terms, call, STARTED)] + calls[vote_lane(terms, call, NEW)] + calls[vote_lane(terms, call, READY)];
}

struct resume_votes resume_vote(const struct resume_terms *terms, const struct resume_worker *w) {
    struct resume_votes v = {.newcomers = terms->has_newcomers && w->is_newcomer};
    if (v.newcomers) return v;
    v.calls[vote_lane(terms, w->next_call, w->is_ready && terms->has_scatters ? READY : w->was_started ? STARTED : NEW)] = 1;
    for (int64_t call = w->next_call - terms->depth; call < w->next_call; call++)
        if (call >= 0 && call < w->first_call) v.missing[call % CALL_MODULUS] = 1;
    return v;
}

void resume_offer(struct resume_votes *v, int64_t call, int64_t chunks) {
    if (!v->newcomers) v->chunks[call % CALL_MODULUS] = chunks;
}

/* Finds the calls that were voted for, [first, end], and whether one behind `first` was not started in an earlier epoch.
 * Returns the number of votes. */
static int64_t range_of_votes(const struct resume_terms *terms, int64_t around, const int64_t *calls, int64_t *first,
                              int64_t *end, int64_t *first_new) {
    int64_t count = 0;
    *first = *first_new = INT64_MAX;
    *end = -1;
    for (int64_t call = around - terms->depth; call <= around + terms->depth; call++) {
        int64_t here = votes_for(terms, calls, call);
        if (!here) continue;
        count += here;
        if (call < *first) *first = call;
        if (calls[vote_lane(terms, call, NEW)] && *first_new == INT64_MAX) *first_new = call;
        *end = call;
    }
    return count;
}

struct resume_outcome resume_evaluate_votes(const struct resume_terms *terms, const struct resume_worker *w,
                                            int64_t newest_call, const struct resume_votes *sums) {
    int is_newcomer = terms->has_newcomers && w->is_newcomer;
    struct resume_outcome o = {.next_call = is_newcomer ? newest_call : w->next_call,
                               .first_call = is_newcomer ? newest_call : w->first_call};
    int64_t first_new;
    int64_t count = sums->newcomers + range_of_votes(terms, o.next_call, sums->calls, &o.first, &o.end, &first_new);
    if (terms->has_quorum) first_new = INT64_MAX; /* sums were made without workers that had not started the call */
    if (sums->newcomers == terms->workers) o.first = o.end = o.next_call;
    o.is_desync = count != terms->workers || o.first < 0 || o.end - o.first > terms->depth || first_new < o.end;
    if (o.is_desync) return o;
    int64_t past = terms->workers - sums->newcomers; /* workers that are past the call */
    o.stable_until = is_newcomer ? o.end : o.first; /* a ready worker does not know yet that it may finish */
    int64_t lowest = o.first, ready = sums->calls[vote_lane(terms, lowest, READY)];
    if (ready != votes_for(terms, sums->calls, lowest)) ready = 0;
    o.is_ready_finished = ready && w->next_call == lowest;
    if (ready && o.first++ == o.end) o.end++;
    for (int64_t call = o.first; call < o.end; call++) {
        int64_t i = call - o.first;
        int64_t missing = terms->has_newcomers ? sums->missing[call % CALL_MODULUS] : 0;
        past -= votes_for(terms, sums->calls, call) + (i == 0 ? ready : 0);
        o.holders[i] = past - missing;
        o.contributors[i] = terms->workers - sums->newcomers - missing;
        if (o.holders[i] <= 0) { /* its holders left the job */
            o.is_desync = 1;
            return o;
        }
        o.chunks[i] = sums->chunks[call % CALL_MODULUS] / o.holders[i];
    }
    return o;
}

static int64_t vote_lanes(const struct resume_terms *terms) {
    return terms->has_newcomers  ? 3 * CALL_MODULUS + 1
           : terms->has_scatters ? (VOTES * modulus(terms) + 1) / 2
                                 : modulus(terms);
}

/* A vote is half a lane: there are fewer than 2^15 workers. */
void resume_write_votes(const struct resume_terms *terms, const struct resume_votes *v, struct header *h) {
    uint32_t *lanes = lanes_of(h);
    for (int64_t i = 0; i < VOTES * modulus(terms); i++)
        if (v->calls[i]) lanes[i / 2] |= __builtin_bswap32((uint32_t)v->calls[i] << 16 * (i % 2));
    if (!terms->has_newcomers) return;
    for (int i = 0; i < CALL_MODULUS; i++) {
        lanes[CALL_MODULUS + i] = __builtin_bswap32((uint32_t)v->chunks[i]);
        lanes[2 * CALL_MODULUS + 1 + i] = __builtin_bswap32((uint32_t)v->missing[i]);
    }
    lanes[2 * CALL_MODULUS] = __builtin_bswap32((uint32_t)v->newcomers);
}

void resume_read_votes(const struct resume_terms *terms, struct resume_votes *sums, struct header *h, int64_t lanes) {
    const uint32_t *from = lanes_of(h);
    *sums = (struct resume_votes){0};
    int64_t votes = (terms->has_scatters ? VOTES : READY) * modulus(terms);
    for (int64_t i = 0; i < votes && i / 2 < lanes; i++)
        sums->calls[i] = __builtin_bswap32(from[i / 2]) >> 16 * (i % 2) & 0xFFFF;
    if (!terms->has_newcomers) return;
    for (int i = 0; i < CALL_MODULUS; i++) {
        sums->chunks[i] = __builtin_bswap32(from[CALL_MODULUS + i]);
        sums->missing[i] = __builtin_bswap32(from[2 * CALL_MODULUS + 1 + i]);
    }
    sums->newcomers = __builtin_bswap32(from[2 * CALL_MODULUS]);
}

/* The lanes behind the votes are divided among the workers, 30 bits of each lane. */
struct resume_nonce_field resume_nonce_field(const struct resume_terms *terms, int64_t lanes, int64_t rank) {
    enum { BITS = 30 };
    int64_t first = vote_lanes(terms);
    if (lanes <= first) return (struct resume_nonce_field){0};
    int64_t in_lane = (terms->workers + lanes - first - 1) / (lanes - first);
    if (in_lane > BITS) return (struct resume_nonce_field){0};
    int bits = (int)(BITS / in_lane);
    return (struct resume_nonce_field){first + rank / in_lane, (int)(rank % in_lane) * bits, (1u << bits) - 1};
}

void resume_write_nonce(struct resume_nonce_field field, int64_t nonce, struct header *h) {
    if (field.mask) lanes_of(h)[field.lane] |= __builtin_bswap32(((uint32_t)nonce & field.mask) << field.shift);
}

int resume_has_nonce(struct resume_nonce_field field, int64_t nonce, struct header *h) {
    uint32_t sum = field.mask ? __builtin_bswap32(lanes_of(h)[field.lane]) : 0;
    return (sum >> field.shift & field.mask) == ((uint32_t)nonce & field.mask);
}
