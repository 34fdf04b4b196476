/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "call.h"

#include "hand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct nf_call *call_create(const struct nf_request *request) {
    struct nf_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->request = *request;
    int64_t itemsize = nf_itemsize((enum nf_dtype)request->dtype);
    size_t bytes = (size_t)(request->elements * itemsize);
    c->input = malloc(bytes + (size_t)(NF_WIDTH_MAX * itemsize)); /* room for the padding */
    if (!c->input) {
        free(c);
        return NULL;
    }
    memcpy(c->input, request->array, bytes);
    return c;
}

static int64_t row_bytes(const struct nf_call *c) { return c->codec.width * c->codec.itemsize; }
static const void *input_row(const struct nf_call *c, int64_t row) { return c->input + row * row_bytes(c); }

int call_cut(struct nf_call *c, int64_t lanes) {
    const struct nf_request *r = &c->request;
    nf_codec_start(&c->codec, (enum nf_dtype)r->dtype, (enum nf_scheme)r->scheme, (int)r->bits, lanes);
    c->rows = (r->elements + c->codec.width - 1) / c->codec.width;
    int64_t bytes = r->elements * c->codec.itemsize;
    memset(c->input + bytes, 0, (size_t)(c->rows * row_bytes(c) - bytes));
    c->own = calloc((size_t)c->rows, 4);
    if (!c->own) return -1;
    c->agreed = c->own + c->rows;
    c->repeat = c->agreed + c->rows;
    c->seen = c->repeat + c->rows;
    if (is_float(c))
        for (int64_t row = 0; row < c->rows; row++) c->own[row] = nf_row_exponent(&c->codec, input_row(c, row), 0);
    return 0;
}

static void forget_again(struct nf_call *c) {
    for (int64_t i = 0; i < c->tree_count; i++) {
        struct again *a = &c->again[i];
        free(a->special);
        free(a->kinds);
        free(a->rows);
        free(a->place);
        free(a->halves);
        *a = (struct again){0};
    }
    free(c->balance);
    c->balance = NULL;
}

void call_restart(struct nf_call *c, const struct nf_assignment *a) {
    forget_again(c);
    c->workers = a->workers;
    c->opened = c->predicted = 0;
    c->holders = c->holding = 0;
    c->overflows = 0;
    c->wrong = NF_PENDING;
    c->quorum = a->quorum;
    c->hurry.count = 0;
    c->outcome.least = c->outcome.most = c->outcome.sums = c->outcome.contributions = 0;
    c->tree_count = a->tree_count;
    c->excess.index = -1;
    nf_codec_workers(&c->codec, c->workers, c->request.op == NF_AVERAGE);
    memset(c->repeat, 0, (size_t)c->rows);
    int64_t from = 0;
    for (int64_t i = 0; i < a->tree_count; i++) {
        int64_t upto = i + 1 == a->tree_count ? c->rows : (int64_t)rint(a->trees[i].upto * (double)c->rows);
        if (upto > c->rows) upto = c->rows;
        c->again[i].first = from;
        c->again[i].last = from = upto > from ? upto : from;
    }
}

int call_spread(struct nf_call *c, const struct nf_assignment *a, const struct tree *trees) {
    int64_t channels[NF_TREES_MAX];
    int failed = 0;
    for (int64_t i = 0; i < a->tree_count; i++) channels[i] = rows_ahead(&trees[i]);
    c->balance = a->quorum ? NULL : nf_balance_start(c->rows, a, channels, &failed); /* all would have to vote */
    return failed ? -1 : 0;
}

struct nf_run call_run(const struct nf_call *c, int64_t tree, int64_t lap) {
    return c->balance ? c->balance->run[lap][tree] : (struct nf_run){c->again[tree].first, c->again[tree].last};
}

void call_restore(struct nf_call *c) {
    memcpy(c->request.array, c->input, (size_t)call_bytes(c));
}

void call_free(struct nf_call *c) {
    forget_again(c);
    free(c->own);
    free(c->input);
    free(c);
}

/* Three rounds of splitmix64. */
static uint64_t mix(uint64_t hash, uint64_t number) {
    hash = (hash ^ number) + 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ hash >> 27) * 0x94D049BB133111EBu;
    return hash ^ hash >> 31;
}

static uint64_t kind_of(const struct nf_call *c) {
    const struct nf_request *r = &c->request;
    const int64_t parts[] = {r->elements, r->dtype, r->op, r->scheme, r->bits};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) hash = mix(hash, (uint64_t)parts[i]);
    return hash;
}

void call_sign(struct nf_call *c) {
    int64_t number = c->outcome.number;
    c->print = mix(kind_of(c), (uint64_t)(c->quorum ? number % NUMBERS : number)); /* who came later counts from elsewhere */
}

void call_keep(struct nf_call *c) { memcpy(c->input, c->request.array, (size_t)call_bytes(c)); }

/* A step of float64's exponent byte is eight bits. */
static struct nf_tolerance tolerance(const struct nf_call *c) {
    return c->codec.form == NF_QUADS ? (struct nf_tolerance){0, 0, 0} : (struct nf_tolerance){1, 4, 31};
}

/* The rows of a tree whose scales no earlier row of the call brings. */
static int64_t first_rows(const struct nf_call *c, const struct tree *t) {
    struct nf_run run = call_run(c, t->index, 0);
    int64_t ahead = rows_ahead(t), count = run.last - run.first;
    return count < ahead ? count : ahead;
}

static int64_t all_first_rows(const struct nf_call *c, const struct tree *trees) {
    int64_t count = 0;
    for (int64_t i = 0; i < c->tree_count; i++) count += first_rows(c, &trees[i]);
    return count;
}

void call_predict(struct nf_call *c, const struct nf_predictions *p, const struct tree *trees) {
    memset(c->seen, 0, (size_t)c->rows);
    call_sign(c);
    if (c->balance) c->print = mix(c->print, (uint64_t)c->balance->laps); /* rows of who divides otherwise are not the same */
    if (!predicts(c)) return;
    const uint8_t *known = nf_predictions_find(p, kind_of(c), all_first_rows(c, trees));
    if (!known) return;
    c->predicted = 1;
    for (int64_t i = 0; i < c->tree_count; i++)
        for (int64_t row = call_run(c, i, 0).first, n = first_rows(c, &trees[i]); n > 0; n--, row++, known++) {
            c->seen[row] = *known;
            c->agreed[row] = nf_predicted(tolerance(c), *known);
            c->print = mix(c->print, c->agreed[row]); /* workers that predict otherwise are not in the same call */
        }
}

void call_learn(const struct nf_call *c, struct nf_predictions *p, const struct tree *trees) {
    if (!predicts(c)) return;
    uint8_t *to = nf_predictions_learn(p, kind_of(c), all_first_rows(c, trees), c->outcome.number);
    if (!to) return;
    for (int64_t i = 0; i < c->tree_count; i++) {
        int64_t count = first_rows(c, &trees[i]);
        memcpy(to, c->seen + call_run(c, i, 0).first, (size_t)count);
        to += count;
    }
}

/* Of 48 bits that differ, but for one case in 2^48, if anything does that workers have to have in common. */
static uint32_t print_lane(const struct nf_call *c, int lane) { return (uint32_t)(c->print >> 16 * lane & 0xFFFF); }

static int64_t find(const int64_t *sorted, int64_t count, int64_t wanted) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (sorted[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && sorted[low] == wanted ? low : -1;
}

static int64_t plan_kinds(struct nf_call *c, struct again *a) {
    if (!is_float(c)) return 0;
    for (int64_t row = a->first; row < a->last; row++) a->special_count += c->repeat[row] && c->agreed[row] == NF_NOT_FINITE;
    if (!a->special_count) return 0;
    a->special = malloc((size_t)a->special_count * sizeof *a->special);
    a->kinds = calloc((size_t)(a->special_count * c->codec.width), sizeof *a->kinds);
    if (!a->special || !a->kinds) return -1;
    int64_t n = 0;
    for (int64_t row = a->first; row < a->last; row++)
        if (c->repeat[row] && c->agreed[row] == NF_NOT_FINITE) a->special[n++] = row;
    return n * nf_row_kind_chunks(&c->codec);
}

static int64_t plan_repeat(struct nf_call *c, struct again *a) {
    for (int64_t row = a->first; row < a->last; row++) a->count += c->repeat[row];
    if (!a->count) return 0;
    c->overflows += a->count;
    a->rows = malloc((size_t)a->count * sizeof *a->rows);
    a->place = malloc((size_t)a->count * sizeof *a->place);
    if (!is_float(c)) a->halves = calloc((size_t)(2 * a->count * c->codec.lanes), sizeof *a->halves);
    if (!a->rows || !a->place || (!is_float(c) && !a->halves)) return -1;
    int64_t n = 0;
    for (int64_t row = a->first; row < a->last; row++) {
        if (!c->repeat[row]) continue;
        a->rows[n] = row;
        a->place[n++] = find(a->special, a->special_count, row);
    }
    return is_float(c) ? n : 2 * n;
}

/* A vote is a half of a lane, as there are fewer than 2^15 workers. */
static void fill_votes(const struct nf_call *c, struct header *h) {
    if (!c->strangers) lanes_of(h)[c->ballot / 2] = __builtin_bswap32(1u << 16 * (c->ballot % 2));
    if (!c->quorum) return;
    for (int i = 0; i < NUMBERS; i++) lanes_of(h)[NUMBERS + i] = __builtin_bswap32((uint32_t)c->sizes[i]);
    lanes_of(h)[2 * NUMBERS] = __builtin_bswap32((uint32_t)c->strangers);
}

static void take_votes(struct nf_call *c, const struct tree *t, struct header *h) {
    for (int64_t i = 0; i < VOTES_MAX; i++) {
        uint32_t lane = i / 2 < t->lanes ? __builtin_bswap32(lanes_of(h)[i / 2]) : 0;
        c->votes[i] = lane >> 16 * (i % 2) & 0xFFFF;
    }
    if (!c->quorum) return;
    for (int i = 0; i < NUMBERS; i++) c->sizes[i] = __builtin_bswap32(lanes_of(h)[NUMBERS + i]);
    c->strangers = __builtin_bswap32(lanes_of(h)[2 * NUMBERS]);
}

static void fill_opening(const struct nf_call *c, const struct tree *t, struct header *h) {
    for (int i = 0; i < FINGERPRINT; i++) lanes_of(h)[i] = __builtin_bswap32(print_lane(c, i));
    if (c->holders) return;
    int64_t first = call_run(c, t->index, 0).first;
    for (int64_t row = first; row < first + first_rows(c, t); row++)
        if (c->own[row] > h->exponent) h->exponent = c->own[row];
}

/* The trees' speeds, and then what they owe. */
static void fill_vote(const struct nf_call *c, struct header *h) {
    const struct nf_balance *b = c->balance;
    for (int64_t i = 0; i < b->trees; i++) {
        lanes_of(h)[i] = __builtin_bswap32((uint32_t)b->speed[i]);
        lanes_of(h)[b->trees + i] = __builtin_bswap32((uint32_t)b->owed[i]);
    }
}

static void take_vote(struct nf_balance *b, struct header *h) {
    for (int64_t i = 0; i < b->trees; i++) {
        b->sum_speed[i] = (int64_t)__builtin_bswap32(lanes_of(h)[i]);
        b->sum_owed[i] = (int64_t)__builtin_bswap32(lanes_of(h)[b->trees + i]);
    }
    b->counted = 1;
}

int64_t call_plan(struct nf_call *c, enum part part, const struct tree *t) {
    struct again *a = &c->again[t->index];
    switch (part) {
    case RESUME:
    case CLOSING:
        return t->index == 0;
    case OPENING:
        return t->index == 0 || (first_rows(c, t) && waits_for_opening(c) && !c->holders);
    case DATA:
        return a->last - a->first;
    case VOTE:
        return t->index == 0;
    case HAND:
        return t->index == 0 ? hand_chunks(c, t) : 0;
    case KINDS:
        return plan_kinds(c, a);
    case REPEAT:
        return plan_repeat(c, a);
    default:
        return 0;
    }
}

/* Whether no earlier row of the call is on the row's channel. */
static int is_first(const struct nf_call *c, const struct tree *t, const struct segment *s, int64_t row) {
    return s->lap == 0 && row < call_run(c, t->index, 0).first + rows_ahead(t);
}

/* The next row of the row's channel, or -1. */
static int64_t follower(const struct nf_call *c, const struct tree *t, const struct segment *s, int64_t row) {
    if (c->balance) return nf_balance_follower(c->balance, t->index, s->lap, row, rows_ahead(t));
    int64_t next = row + rows_ahead(t);
    return next < c->again[t->index].last ? next : -1;
}

/* What does not fit the scale: all see it, and learn what would. */
static void decline(const struct nf_call *c, int64_t row, struct header *h) {
    if (c->own[row] > h->exponent) h->exponent = c->own[row];
    h->flags = OVERFLOW;
    memset(lanes_of(h), 0, (size_t)(4 * c->codec.lanes));
}

/* With a quorum scales are agreed without those who were late. What does not fit then, in a chunk that is repeated already,
 * is zeros that do not count. */
static int sits_out(const struct nf_call *c, int64_t row, struct header *h) {
    if (!c->quorum || nf_row_exponent(&c->codec, input_row(c, row), 1) <= c->agreed[row]) return 0;
    memset(lanes_of(h), 0, (size_t)(4 * c->codec.lanes));
    h->reserved = 0;
    return 1;
}

static void fill_data(const struct nf_call *c, const struct tree *t, const struct segment *s, int64_t row, struct header *h) {
    const void *from = input_row(c, row);
    if (c->codec.fixed) {
        h->exponent = c->own[row];
        h->flags = nf_row_pack_fixed(&c->codec, lanes_of(h), from) ? OVERFLOW : 0;
        return;
    }
    int64_t next = follower(c, t, s, row);
    h->exponent = is_float(c) && next >= 0 ? c->own[next] : 0;
    if (predicts(c) && is_first(c, t, s, row)) {
        if (c->own[row] > h->exponent) h->exponent = c->own[row];
        if (c->predicted && c->own[row] > c->agreed[row]) {
            decline(c, row, h);
            return;
        }
    }
    if (c->quorum && c->own[row] > c->agreed[row]) {
        decline(c, row, h);
        return;
    }
    if (c->agreed[row] == NF_NOT_FINITE)
        memset(lanes_of(h), 0, (size_t)(4 * c->codec.lanes));
    else
        nf_row_pack(&c->codec, lanes_of(h), from, nf_row_bits(&c->codec, c->agreed[row]), 0);
}

static void fill_repeat(const struct nf_call *c, const struct again *a, int64_t chunk, struct header *h) {
    if (!is_float(c)) {
        nf_half(lanes_of(h), input_row(c, a->rows[chunk / 2]), chunk % 2 == 0, c->codec.lanes);
        return;
    }
    int64_t row = a->rows[chunk];
    if (sits_out(c, row, h)) return;
    nf_row_pack(&c->codec, lanes_of(h), input_row(c, row), nf_row_bits(&c->codec, c->agreed[row]), 1);
}

void call_fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->call;
    const struct again *a = &c->again[t->index];
    if (s->part != DATA && s->part != TAIL) memset(lanes_of(h), 0, (size_t)(4 * t->lanes));
    switch (s->part) {
    case RESUME:
        fill_votes(c, h);
        break;
    case HAND:
        hand_fill(c, t, chunk, h);
        break;
    case CLOSING:
        break;
    case STRANGE:
        h->reserved = 0;
        break;
    case OPENING:
        fill_opening(c, t, h);
        break;
    case DATA:
    case TAIL:
        fill_data(c, t, s, s->first + chunk, h);
        break;
    case VOTE:
        fill_vote(c, h);
        break;
    case KINDS: {
        int64_t chunks = nf_row_kind_chunks(&c->codec);
        const void *from = input_row(c, a->special[chunk / chunks]);
        nf_row_kinds(&c->codec, lanes_of(h), from, chunk % chunks);
        h->exponent = nf_row_exponent(&c->codec, from, 1);
        break;
    }
    default:
        fill_repeat(c, a, chunk, h);
    }
}

/* Lanes of a row of 64-bit integers that are beyond int64 are remembered, the first one of the array. */
static void write_sums(struct nf_call *c, int64_t row, const uint32_t *lanes, int bits, const int32_t *kinds) {
    int64_t at = row * c->codec.width, rest = c->request.elements - at;
    uint8_t *to = (uint8_t *)c->request.array + at * c->codec.itemsize;
    struct nf_excess excess = nf_row_unpack(&c->codec, to, rest < c->codec.width ? rest : c->codec.width, lanes, bits, kinds);
    if (excess.index < 0 || (c->excess.index >= 0 && c->excess.index < at + excess.index)) return;
    c->excess = (struct nf_excess){at + excess.index, excess.total};
}

static int64_t take_data(struct nf_call *c, const struct tree *t, const struct segment *s, int64_t row, struct header *h) {
    int overflow = (h->flags & OVERFLOW) != 0;
    if (c->codec.form == NF_WORDS) {
        write_sums(c, row, lanes_of(h), 0, NULL);
        c->repeat[row] = (uint8_t)overflow;
        return NF_PENDING;
    }
    if (c->codec.fixed) {
        c->agreed[row] = h->exponent;
        c->repeat[row] = overflow || h->exponent == NF_NOT_FINITE;
        if (!c->repeat[row]) write_sums(c, row, lanes_of(h), c->codec.fixed_bits, NULL);
        return NF_PENDING;
    }
    int64_t next = follower(c, t, s, row);
    uint8_t scale = c->agreed[row], seen = h->exponent;
    int foretold = c->predicted && is_first(c, t, s, row), declined = overflow && !foretold;
    if (declined && !c->quorum) return NF_BEYOND_SCALE;
    c->repeat[row] = foretold ? overflow || nf_mispredicted(tolerance(c), scale, seen)
                              : declined || (is_float(c) && scale == NF_NOT_FINITE);
    if (!c->repeat[row]) write_sums(c, row, lanes_of(h), nf_row_bits(&c->codec, scale), NULL);
    if (foretold || declined) c->agreed[row] = seen;
    if (is_first(c, t, s, row) && seen && seen != NF_NOT_FINITE) c->seen[row] = seen;
    if (next >= 0) c->agreed[next] = seen;
    return NF_PENDING;
}

static int64_t take_repeat(struct nf_call *c, const struct again *a, int64_t chunk, struct header *h) {
    if (!is_float(c)) {
        nf_swap((uint32_t *)(a->halves + chunk * c->codec.lanes), lanes_of(h), c->codec.lanes);
        return NF_PENDING;
    }
    if (h->flags & OVERFLOW) return NF_BEYOND_SCALE;
    int64_t row = a->rows[chunk], place = a->place[chunk];
    write_sums(c, row, lanes_of(h), nf_row_bits(&c->codec, c->agreed[row]),
               place < 0 ? NULL : a->kinds + place * c->codec.width);
    return NF_PENDING;
}

enum { NEITHER = 1 + (1 << 16) }; /* infinities of both signs: NaN */

static void take_kinds(struct nf_call *c, const struct again *a, int64_t chunk, struct header *h) {
    int64_t chunks = nf_row_kind_chunks(&c->codec), place = chunk / chunks, width = c->codec.width, lanes = c->codec.lanes;
    int32_t *to = a->kinds + place * width + chunk % chunks * lanes;
    nf_swap((uint32_t *)to, lanes_of(h), width < lanes ? width : lanes);
    if (c->quorum && (h->reserved & COUNT) < c->workers) /* whoever is missing may have one anywhere */
        for (int64_t i = 0; i < (width < lanes ? width : lanes); i++) to[i] = NEITHER;
    c->agreed[a->special[place]] = h->exponent;
}

/* Only the first tree's opening is everybody's, so it alone can tell everybody. */
static int64_t take_opening(struct nf_call *c, const struct tree *t, struct header *h) {
    if (t->index == 0) c->opened = 1;
    int64_t callers = c->quorum ? h->reserved & COUNT : c->workers;
    for (int i = 0; i < FINGERPRINT; i++)
        if (__builtin_bswap32(lanes_of(h)[i]) != (uint32_t)callers * print_lane(c, i)) return NF_MISMATCH;
    if (waits_for_opening(c) && !c->holders)
        memset(c->agreed + call_run(c, t->index, 0).first, h->exponent, (size_t)first_rows(c, t));
    return NF_PENDING;
}

/* Averages are over those who are in the sum. */
static void note_count(struct nf_call *c, int64_t count) {
    struct nf_outcome *o = &c->outcome;
    if (c->request.op == NF_AVERAGE && count) c->codec.divisor = count;
    if (!o->sums || count < o->least) o->least = count;
    if (count > o->most) o->most = count;
    o->sums++;
    o->contributions += count;
}

int64_t call_take(const struct tree *t, struct segment *s, int64_t chunk, struct header *h, double now) {
    struct nf_call *c = s->call;
    const struct again *a = &c->again[t->index];
    if (c->quorum && (s->part == DATA || s->part == REPEAT)) note_count(c, h->reserved & COUNT);
    switch (s->part) {
    case RESUME:
        take_votes(c, t, h);
        return NF_PENDING;
    case HAND:
        hand_take(c, t, chunk, h);
        return NF_PENDING;
    case OPENING:
        return take_opening(c, t, h);
    case DATA:
    case TAIL:
        if (c->balance) nf_balance_got(c->balance, t->index, now);
        return take_data(c, t, s, s->first + chunk, h);
    case VOTE:
        take_vote(c->balance, h);
        return NF_PENDING;
    case KINDS:
        take_kinds(c, a, chunk, h);
        return NF_PENDING;
    case REPEAT:
        return take_repeat(c, a, chunk, h);
    default:
        return NF_PENDING;
    }
}

static void join_halves(struct nf_call *c, const struct again *a) {
    int64_t lanes = c->codec.lanes;
    for (int64_t k = 0; k < a->count * lanes; k++) {
        int64_t lane = k % lanes, index = a->rows[k / lanes] * lanes + lane;
        const int32_t *high = a->halves + 2 * (k / lanes) * lanes;
        int64_t sum = (int64_t)high[lane] * 65536 + high[lanes + lane];
        if (index >= c->request.elements) continue;
        if ((sum < INT32_MIN || sum > INT32_MAX) && c->excess.index < 0) c->excess = (struct nf_excess){index, sum};
        ((int32_t *)c->request.array)[index] = (int32_t)sum;
    }
}

int64_t call_join(struct nf_call *c) {
    if (c->codec.form == NF_WORDS)
        for (int64_t i = 0; i < c->tree_count; i++) join_halves(c, &c->again[i]);
    if (c->excess.index < 0) return NF_DONE;
    c->outcome.index = c->excess.index;
    c->outcome.total = (int64_t)c->excess.total;
    c->outcome.total_high = (int64_t)(c->excess.total >> 64);
    return NF_SUM_OVERFLOW;
}
