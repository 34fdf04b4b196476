/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One tree in one epoch: which chunk goes when, and again. docs/protocol.md, sections 5.1 and 5.2. Its channels are those of
 * two streams; chunks of a stream have places 0, 1, 2 ..., the same at all workers, and place j is on the stream's channel
 * j mod its channels. */

#ifndef NETFOLD_TREE_H
#define NETFOLD_TREE_H

#include "core.h"

struct header {
    uint8_t version_kind, flags;
    uint16_t tree;
    uint32_t tag;
    uint16_t slot, child;
    uint8_t exponent, reserved;
    uint16_t lanes;
};

_Static_assert(sizeof(struct header) == NF_HEADER_BYTES, "the header of section 2");

enum {
    VERSION_KIND_GRADIENT = 0x10,
    VERSION_KIND_RESULT = 0x11,
    OVERFLOW = 0x80,
    CONGESTION = 0x40,
    QUORUM = 0x20, /* these three with a quorum, docs/protocol.md, 3.7 */
    SEAL = 0x10,
    LAPPED = 0x08,
    FLOATS = 0x04, /* the lanes are float32 */
    COUNT = 0x7F, /* of the reserved byte: how many contributions */
    ROCE = 0x80,  /* of it: the rest is what the completing packet said on its RoCE connection, docs/roce.md, 4 */
    ROUND_BITS = 20,
    NOBODY = -1
};

static inline uint32_t *lanes_of(struct header *h) { return (uint32_t *)(h + 1); }

/* How a call does with a quorum. `count`: contributions in its last sum that was sealed without everybody; 0: none was. */
struct hurry {
    int64_t count;
};

/* What calls carry, and what is only known from results: kinds, repetitions, closings, and the resume chunk. */
enum which { MAIN, CONTROL, STREAMS };

/* A run of places of a stream with one meaning. */
struct segment {
    struct segment *next;
    struct nf_call *call;
    int64_t part; /* enum part of call.h */
    int64_t first, lap; /* of data: the first row, and the lap that it is of */
    int64_t base, count, left;
    int64_t stream;
    struct hurry *hurry; /* NULL: all have to contribute */
    int held;    /* its contents are not known yet: nothing goes, from here on */
    double back; /* when its first result came: what went before may have waited for other workers */
};

struct stream {
    int64_t from, count; /* channels */
    int64_t *ready;      /* places that may go, a heap with the lowest first */
    int64_t ready_count;
    struct segment *first, *last;
    int64_t end, limit; /* of the places that have a meaning, and of those that the epoch has */
    int64_t highest;    /* one more than the highest place that ever went */
    int64_t under_way;
};

struct channel {
    int64_t due; /* place of its next chunk, or of that under way */
    double sent_at, begun_at; /* `begun_at`: when it went first */
    struct segment *segment; /* of the chunk under way */
    int32_t previous, next;  /* under way, by when they went last */
    uint8_t busy, resent, asked; /* `asked`: it says that its deadline is over */
    uint8_t before_resent;       /* the chunk before went again for lost, and its result came once */
};

/* What came since a window was accounted last. */
struct found {
    int64_t count, marked, fresh, judged;
    double rtt_sum, judged_sum; /* `judged`: of those that went when the other workers were at it too */
    double waited;              /* the least of those that went once, but meanwhile this worker sent something again; or 0 */
};

/* What came since a round trip was known of a chunk that went once while nothing went again. */
struct doubt {
    int64_t count, twice; /* results; and chunks that went again of which a second one came: the first was not lost */
    double whole;         /* the least time since a chunk went first; or 0 */
};

struct tree {
    struct nf_tree_spec spec;
    int64_t index, epoch, lanes, stride, count; /* `count`: of channels, A/2 */
    struct channel *channels;
    uint8_t *rows;   /* their packets */
    int64_t *ready;  /* of both streams */
    struct stream streams[STREAMS];
    int64_t under_way;
    int32_t oldest, newest; /* channels under way, by when they went last */
    double newest_back;     /* when the youngest chunk went whose result is in, of those that went once, */
    double again_back;      /* and of those that went again, if it was not for the first of them that the result came */
    double again_at;        /* when something went again */
    double shrank_at, probed_at, active_at; /* `active_at`: when something went or came last */
    int64_t quorum, workers, late;
    double deadline, ask_at; /* with a quorum: `ask_at`: no deadline of a chunk under way is over before */
    int lapped;
    int tail_probed, held_back, probe_due; /* `probe_due`: the oldest chunk is to go again now */
    int64_t retransmits, probes, results, marked;
    struct nf_timing timing;
    struct nf_rtt rtt;
    struct nf_window window;
    struct nf_pacer pacer;
    struct found found;
    struct doubt doubt;
    int64_t accounted; /* of `found`, how many results the last turn saw */
};

/* 0, or -1: no memory. */
int tree_start(struct tree *t, const struct nf_assignment *a, int64_t index, double now);
void tree_free(struct tree *t);

/* A tree of one channel has one stream. */
static inline struct stream *stream_of(struct tree *t, int64_t stream) { return &t->streams[t->count > 1 ? stream : MAIN]; }

/* Of a part with as many chunks, how many go before the result of the first is needed. */
static inline int64_t rows_ahead(const struct tree *t) { return t->streams[MAIN].count; }

/* Places for a segment of `stream`; 0: the epoch has not so many left. The tree owns it until its results are in. */
int tree_append(struct tree *t, struct segment *s);

/* The contents of a part of a call are known now. */
void tree_unhold(struct tree *t, const struct nf_call *call, int64_t part);

/* The segment whose chunk a packet is the awaited result of, which is awaited no more; NULL: none. `chunk` is its place in
 * the segment. A segment that is complete is taken off, and the caller's. */
struct segment *tree_accept(struct tree *t, const struct header *h, int marked, double now, int64_t *chunk);

/* What follows from the results that came since the last call. */
void tree_account(struct tree *t, double now);

/* Fills `out` with what goes now. `fill` writes the lanes, the exponent and the flags of a chunk that goes for the first
 * time. */
typedef void fill_chunk(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h);
int64_t tree_send(struct tree *t, fill_chunk *fill, struct nf_out *out, int64_t room, double now);

double tree_next(const struct tree *t, double now);

/* In how many seconds a quarter of what is under way can be back at the paced rate; 0: there is no rate, or few are. */
double tree_gather(const struct tree *t);

#endif
