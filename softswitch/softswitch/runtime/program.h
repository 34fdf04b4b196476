/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The contract between a translated program and the core. A program exports one symbol, `ss_program`, that describes its
 * objects by number and gives the functions of its stages; the core owns all state in `struct ss_pipeline` and calls them.
 */
#ifndef SS_PROGRAM_H
#define SS_PROGRAM_H

#include "arith.h"
#include "bits.h"
#include "switch.h"
#include "wide.h"

#define SS_ABI 10u
#define SS_CLONE_SET 0x8000u /* in `clone`: a session was named (session 0 is legal) */

/* The fields of standard_metadata, the first member of every program's PHV. Widths are enforced where they are written. */
struct ss_std {
    uint32_t ingress_port, egress_spec, egress_port, instance_type, packet_length;
    uint32_t enq_timestamp, enq_qdepth, deq_timedelta, deq_qdepth;
    uint32_t mcast_grp, egress_rid, checksum_error, parser_error, priority, qid;
    uint64_t ingress_global_timestamp, egress_global_timestamp;
};

enum ss_instance { SS_NORMAL, SS_INGRESS_CLONE, SS_EGRESS_CLONE, SS_COALESCED, SS_RECIRC, SS_REPLICATION, SS_RESUBMIT };

/* A header of many bytes. `at`: where they are: in the frame as it came, in a block, or zeros. Only the bytes of a block that
 * no other packet has may be written; copies of a packet share a block. */
struct ss_block {
    struct ss_block *next;
    uint32_t refs;
    _Alignas(64) uint8_t bytes[];
};
struct ss_big {
    uint8_t *at;
    struct ss_block *block; /* NULL: `at` is in the frame, or zeros */
};

struct ss_buf; /* a shared, counted byte buffer; core/packet.c */

/* A packet between stages. `phv` is the program's struct phv. */
struct ss_packet {
    struct ss_packet *next;
    struct ss_pipeline *pl;
    const struct ss_shard *shard; /* of the thread that runs the packet */
    const uint8_t *frame; /* the bytes that the parser reads; valid until ingress is over */
    uint32_t frame_len;
    uint32_t payload_len;
    const uint8_t *payload; /* the bytes behind the parsed headers */
    struct ss_buf *buf;     /* holds frame and payload; NULL: the caller of ss_receive holds them */
    uint64_t now_ns, now_us; /* of this pass; now_us counts from the start of the switch */
    uint64_t enq_us;
    uint32_t length;         /* BMv2's packet length register: follows setValid and setInvalid */
    uint32_t ingress_length; /* the length that counters and meters count */
    uint32_t parsed;         /* bytes taken by the parser */
    uint32_t truncate;       /* bytes to keep; UINT32_MAX = all */
    uint32_t out_port;
    uint16_t clone, clone_list, resubmit, recirculate, digest; /* set by primitives; a list id, 0 = none */
    uint16_t passes;
    uint8_t exited, failed;
    uint8_t owner;           /* the shard of the registers that it needs */
    uint8_t queue;           /* of the egress port */
    uint32_t copy;           /* number of the copy of frame `id`, 0 = the frame itself; for the trace */
    uint64_t id;
    _Alignas(64) uint8_t phv[];
};

/* Tables. A key is n 64-bit words; the translator packs fields into words, one field never straddles two words unless it is
 * wider than 64 bits. Bits of no field are 0. */
struct ss_meter {
    uint64_t cir, cburst, pir, pburst; /* per second of bytes or packets */
    uint64_t ctok, ptok, clast, plast; /* tokens, and all tokens since the start (see core/meter.c) */
    uint8_t configured;
    uint8_t busy; /* a thread takes tokens */
};
struct ss_counter {
    uint64_t packets, bytes;
};
struct ss_shard_counter {
    _Alignas(64) struct ss_counter counter; /* a cache line of its own */
};

struct ss_entry {
    uint32_t next;      /* chain of entries with the same masked key, best priority first; SS_NONE ends. Not with ranges */
    uint32_t order;     /* earlier insertion wins among equal priorities */
    int64_t priority;   /* larger wins */
    uint32_t action;    /* index of the action, or of a member or group, as `kind` says */
    uint8_t kind;
    const uint64_t *data;  /* action data */
    const uint64_t *range; /* lo, hi pairs for the table's range fields, or NULL */
    struct ss_interval *interval; /* its node in the tree of its masked key, if the table has range fields */
    struct ss_counter counter;       /* of shard 0 */
    struct ss_shard_counter *counters; /* of the shards from 1 on */
    struct ss_meter *meter;
    uint64_t last_hit_ns, timeout_ns;
    uint64_t notified_ns; /* time of the last idle notification */
    uint64_t due_ns;     /* time of the next check for idleness */
    uint32_t heap_index[2];   /* in its tuple's heap and in the table's; see enum ss_order */
    uint64_t key[];     /* n words, then n words of mask */
};
#define SS_NONE UINT32_MAX
enum ss_kind { SS_ACTION, SS_MEMBER, SS_GROUP };

/* A node of a tree by (lo, handle) of the first range field, balanced by `rank`. `top` is the largest hi, `best` the largest
 * priority in its subtree. */
struct ss_interval {
    uint32_t left, right, rank;
    uint64_t top;
    int64_t best;
    uint64_t bounds[]; /* lo, hi of each range field */
};

/* Entries by handle, the first in order at the root. */
enum ss_order { SS_BY_PRIORITY, SS_BY_DUE };
struct ss_heap {
    uint32_t *handles;
    uint32_t count, capacity;
};

/* A tuple: the entries that share one mask, hashed by masked key. A slot holds the head of a chain, or the root of a tree. */
struct ss_tuple {
    int64_t best;       /* largest priority inside */
    struct ss_heap by_priority;
    uint32_t count, capacity; /* slots, a power of two */
    uint32_t *slots;    /* entry index or SS_NONE */
    uint64_t *mask;     /* n words */
    uint64_t *keys;     /* capacity * n words, beside the slots */
};

struct ss_act {
    uint32_t action;
    uint32_t present;
    const uint64_t *data;
};
/* `members`: the `count` live members in order; from index `total` all members; from 2 * `total` their watch ports (SS_NONE:
 * always live). */
struct ss_group {
    uint32_t count, total;
    uint32_t *members;
};
struct ss_profile {
    uint32_t n_members, n_groups;
    struct ss_act *members;
    struct ss_group *groups;
};

struct ss_table {
    uint32_t words, ranges;
    uint64_t changes; /* of the set of entries, from 1; see struct ss_memo */
    uint32_t n_tuples, count;
    struct ss_tuple *tuples; /* by falling `best` */
    struct ss_entry **entries;
    uint32_t n_entries; /* slots of `entries` */
    uint32_t *free, free_at; /* ring of the n_entries - count slots without an entry, the longest free first */
    struct ss_heap by_due; /* those with a timeout */
    struct ss_profile *profile;
    struct ss_entry default_entry; /* the default action */
};

/* A result of a table's lookup: all keys that are equal to `words` under the mask behind it have this entry (NULL: none), as
 * long as the table has the same `changes`. Packets of a run mostly have the entries of the packet before. A table has one for
 * each value of its key's lowest bits, mostly those of a port: frames of several ports come, and copies leave, in turn. */
#define SS_MEMO_WORDS 3u
#define SS_MEMO_WAYS 8u
struct ss_memo {
    uint64_t changes;
    struct ss_entry *entry;
    uint64_t words[2 * SS_MEMO_WORDS]; /* n words of a masked key, then n words of mask */
};

/* The objects that a program declares, with their sizes. */
struct ss_table_desc {
    uint32_t words, ranges;
    int32_t profile;
};
struct ss_meter_desc {
    uint32_t size, bytes;
};
/* A register array is lane `lane` of bank `bank`; cell i lies at element i * lanes + lane. A bank of one is a plain array. */
struct ss_bank_desc {
    uint32_t cells, lanes, elem_bytes;
};
struct ss_reg_desc {
    uint32_t bank, lane;
};
struct ss_vset_desc {
    uint32_t words;
};

struct ss_program {
    uint32_t abi, phv_bytes, egress_spec_mask; /* the mask is that of all port fields */
    uint32_t has_mcast; /* the program declares mcast_grp */
    uint32_t traced;    /* the program and the core write the trace */
    uint32_t times_frames; /* the program can read the arrival time of frames */
    uint32_t n_tables, n_profiles, n_counters, n_meters, n_banks, n_regs, n_vsets, n_digests, n_actions, n_big;
    const struct ss_table_desc *tables;
    const uint32_t *counters; /* sizes */
    const struct ss_meter_desc *meters;
    const struct ss_bank_desc *banks;
    const struct ss_reg_desc *regs;
    const struct ss_vset_desc *vsets;
    const uint32_t *action_words; /* words of data of each action */
    const uint32_t *big;   /* bytes of each big header */
    uint32_t big_at;       /* offset of its struct ss_big [n_big] in the PHV */
    const uint8_t *zeros;  /* bytes of any big header that nothing has set */
    void (*parse)(struct ss_packet *);   /* frame -> phv, payload; verifies checksums */
    void (*ingress)(struct ss_packet *);
    void (*egress)(struct ss_packet *);
    uint32_t (*headers_bytes)(const struct ss_packet *); /* bytes that deparse will write; valid after update_checksums */
    void (*update_checksums)(struct ss_packet *);
    void (*deparse)(struct ss_packet *, uint8_t *out);   /* writes exactly headers_bytes */
    void (*copy_fields)(void *dst_phv, const void *src_phv, uint32_t list); /* a field list; 0 = none */
    void (*reset_metadata)(void *phv); /* all metadata headers to zero */
    uint32_t (*digest)(const struct ss_packet *, uint32_t list, uint8_t *out); /* bytes written, at most 4096 */
};

struct ss_vset {
    uint32_t count;
    uint64_t *members; /* count * (words of value, words of mask, n) */
};

/* The part of a program that one thread of the data plane has. Of every SS_SHARD_CELLS * threads cells of a register a shard has the
 * SS_SHARD_CELLS cells at its place, so no two threads touch one. */
#define SS_SHARD_CELLS 16u
struct ss_shard {
    uint32_t index, mask; /* mask: threads - 1; their number is a power of two */
    struct ss_memo (*memos)[SS_MEMO_WAYS]; /* by table */
    struct ss_counter **counters; /* summed over the shards when they are read */
    uint8_t *scratch;      /* SS_MAX_FRAME + 8192 bytes: inputs of checksums and hashes */
    struct ss_block **blocks; /* free; each packet object adds one for each big header, so none lacks */
    struct ss_packet *blank; /* the bytes of a new packet */
    struct ss_lock *lock;  /* held by the thread in a batch; control operations hold those of all shards */
};

struct ss_pipeline {
    const struct ss_program *program;
    struct ss_switch *owner;
    uint32_t drop_port; /* of the owner */
    uint32_t packet_bytes; /* of an object: struct ss_packet with the PHV, in whole cache lines */
    struct ss_table *tables;
    struct ss_profile *profiles;
    struct ss_meter **meters;
    void **banks;
    struct ss_vset *vsets;
    uint8_t *digest_on; /* by list id - 1 */
    struct ss_pre *pre;
    uint64_t random;    /* state of random() */
    void *object;       /* of dlopen */
    uint32_t threads;
    struct ss_shard *shards; /* by thread */
};

/* ---- functions called by generated code ---- */

#pragma GCC visibility push(default)

/* A text buffer truncates text that does not fit. */
#define SS_TEXT_LIMBS 260
struct ss_text {
    uint32_t used;
    char text[8192];
};
void ss_text_add(struct ss_text *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes a number in decimal, from two's complement of up to SS_TEXT_LIMBS limbs. */
void ss_text_number(struct ss_text *x, const ss_limb *limbs, uint32_t n);
/* Writes a number in hexadecimal, all bytes of `width` bits. */
void ss_text_field(struct ss_text *x, const uint64_t *words, uint32_t width);

/* The trace: a step, the value of a field, a lookup (`e` NULL = a miss), the action that a table chose. Levels: 'D', 'T'. */
enum ss_key_kind { SS_KEY_EXACT, SS_KEY_LPM, SS_KEY_TERNARY, SS_KEY_RANGE };
struct ss_key_text {
    const char *name;
    enum ss_key_kind kind;
    uint32_t word, shift, width;
}; /* `word` of a range: which */
void ss_trace(struct ss_packet *k, char level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ss_trace_value(struct ss_packet *k, const char *name, const uint64_t *words, uint32_t width);
void ss_trace_lookup(struct ss_packet *k, const char *table, const struct ss_table *t, const struct ss_entry *e,
                     const struct ss_key_text *fields, uint32_t n, const uint64_t *key, const uint64_t *values);
void ss_trace_action(struct ss_packet *k, const char *action, const uint64_t *data, const uint32_t *widths, uint32_t n);

SS_INLINE uint64_t ss_mix(const uint64_t *k, unsigned n) {
    uint64_t h = 0x9e3779b97f4a7c15ULL;
    for (unsigned i = 0; i < n; i++) {
        unsigned __int128 m = (unsigned __int128)(k[i] ^ h) * 0xa0761d6478bd642fULL;
        h = (uint64_t)m ^ (uint64_t)(m >> 64);
    }
    return h ^ (h >> 29);
}

/* Returns the best entry of an interval tree whose ranges contain the values, or NULL. */
struct ss_entry *ss_interval_best(const struct ss_table *t, uint32_t root, const uint64_t *values, uint32_t ranges);

/* Returns the best entry for `key`, or NULL. `n` and `ranges` are constants of the table; `values` holds its range fields'
 * values. */
SS_INLINE struct ss_entry *ss_lookup(const struct ss_table *t, const uint64_t *key, unsigned n, const uint64_t *values,
                                     unsigned ranges) {
    struct ss_entry *found = 0;
    for (uint32_t g = 0; g < t->n_tuples; g++) {
        const struct ss_tuple *tu = &t->tuples[g];
        if (found && found->priority > tu->best) break;
        uint64_t k[n ? n : 1];
        for (unsigned i = 0; i < n; i++) k[i] = key[i] & tu->mask[i];
        uint32_t at = (uint32_t)ss_mix(k, n) & (tu->capacity - 1);
        for (;; at = (at + 1) & (tu->capacity - 1)) {
            uint32_t e = tu->slots[at];
            if (e == SS_NONE) break;
            const uint64_t *have = tu->keys + (uint64_t)at * n;
            unsigned same = 1;
            for (unsigned i = 0; i < n; i++) same &= have[i] == k[i];
            if (!same) continue;
            struct ss_entry *en = ranges ? ss_interval_best(t, e, values, ranges) : t->entries[e];
            if (en &&
                (!found || en->priority > found->priority || (en->priority == found->priority && en->order < found->order)))
                found = en;
            break;
        }
    }
    return found;
}

/* Looks up as ss_lookup, in a table of at most SS_MEMO_WORDS words and without ranges. An entry above the best of all other
 * tuples is that of all keys with its masked key; any other result is that of its key alone. */
SS_INLINE struct ss_entry *ss_lookup_remembered(const struct ss_table *t, struct ss_memo *memos, const uint64_t *key,
                                                unsigned n) {
    struct ss_memo *m = &memos[key[0] % SS_MEMO_WAYS];
    uint64_t differs = m->changes ^ t->changes;
    for (unsigned i = 0; i < n; i++) differs |= (key[i] & m->words[n + i]) ^ m->words[i];
    if (SS_LIKELY(!differs)) return m->entry;
    struct ss_entry *found = ss_lookup(t, key, n, 0, 0);
    int is_above = found && (t->n_tuples == 1 || t->tuples[1].best < found->priority);
    for (unsigned i = 0; i < n; i++) {
        m->words[i] = is_above ? found->key[i] : key[i];
        m->words[n + i] = is_above ? found->key[n + i] : ~0ULL;
    }
    m->entry = found;
    m->changes = t->changes;
    return found;
}

/* Give a big header other bytes: a block, those of the frame, a copy of them, or a copy of its own bytes if others see them. */
SS_INLINE struct ss_block *ss_block_take(const struct ss_packet *k) {
    struct ss_block *b = *k->shard->blocks;
    *k->shard->blocks = b->next;
    b->refs = 1;
    return b;
}
SS_INLINE void ss_big_release(const struct ss_packet *k, const struct ss_big *h) {
    if (!h->block || --h->block->refs) return;
    h->block->next = *k->shard->blocks;
    *k->shard->blocks = h->block;
}
SS_INLINE void ss_big_replace(const struct ss_packet *k, struct ss_big *h, struct ss_block *b) {
    ss_big_release(k, h);
    h->block = b;
    h->at = b->bytes;
}
SS_INLINE void ss_big_view(const struct ss_packet *k, struct ss_big *h, const uint8_t *at, unsigned bytes) {
    (void)bytes;
    ss_big_release(k, h);
    h->block = 0;
    h->at = (uint8_t *)at;
}
SS_INLINE void ss_big_copy(const struct ss_packet *k, struct ss_big *h, const uint8_t *from, unsigned bytes) {
    struct ss_block *b = ss_block_take(k);
    memcpy(b->bytes, from, bytes);
    ss_big_replace(k, h, b);
}
SS_INLINE void ss_big_own(const struct ss_packet *k, struct ss_big *h, unsigned bytes) {
    if (!h->block || h->block->refs > 1) ss_big_copy(k, h, h->at, bytes);
}

SS_INLINE void ss_count(struct ss_counter *c, const struct ss_packet *k) {
    c->packets++;
    c->bytes += k->ingress_length;
}

SS_INLINE void ss_count_entry(const struct ss_entry *e, const struct ss_packet *k) {
    struct ss_entry *entry = (struct ss_entry *)e;
    uint32_t shard = k->shard->index;
    ss_count(shard ? &entry->counters[shard - 1].counter : &entry->counter, k);
}

/* Several threads may hit an entry; any of their times will do. */
SS_INLINE void ss_hit(struct ss_entry *e, const struct ss_packet *k) {
    __atomic_store_n(&e->last_hit_ns, k->now_ns, __ATOMIC_RELAXED);
}

/* Finds the action of a member or group; `hash` is that of the selector's fields. An empty member, or a group without live
 * members, runs nothing (action SS_NONE). */
SS_INLINE struct ss_act ss_resolve(const struct ss_profile *p, const struct ss_entry *e, uint64_t hash) {
    struct ss_act none = {SS_NONE, 0, 0};
    uint32_t m = e->action;
    if (e->kind == SS_ACTION) {
        struct ss_act a = {e->action, 1, e->data};
        return a;
    }
    if (e->kind == SS_GROUP) {
        const struct ss_group *g = &p->groups[e->action];
        if (g->count == 0) return none;
        m = g->members[hash % g->count];
    }
    return p->members[m];
}

/* Call this before registers are touched at `index`. Returns true if they are another shard's: the packet then ends here, and
 * its frame runs there. */
SS_INLINE int ss_is_elsewhere(struct ss_packet *k, uint64_t index) {
    uint32_t owner = (uint32_t)(index / SS_SHARD_CELLS) & k->shard->mask;
    if (SS_LIKELY(owner == k->shard->index)) return 0;
    k->owner = (uint8_t)owner;
    k->exited = 1;
    return 1;
}

SS_INLINE uint32_t ss_drop_port(const struct ss_packet *k) { return k->pl->drop_port; }

/* Returns one color by RFC 2698 (0 green, 1 yellow, 2 red), as BMv2 computes it. */
uint32_t ss_meter_run(struct ss_meter *m, uint64_t now_us, uint64_t amount);
/* Returns a uniform number in lo..hi, both included; requires lo <= hi. */
uint64_t ss_random(struct ss_pipeline *pl, uint64_t lo, uint64_t hi);
int ss_vset_has(const struct ss_vset *v, const uint64_t *key, unsigned words);
void ss_log(struct ss_packet *k, const char *text);

/* Hashes over bytes. */
uint64_t ss_crc16(const uint8_t *p, uint32_t n);
uint64_t ss_crc32(const uint8_t *p, uint32_t n);
uint64_t ss_crc_ccitt(const uint8_t *p, uint32_t n);
uint64_t ss_crc8_custom(const uint8_t *p, uint32_t n);
uint64_t ss_crc64_custom(const uint8_t *p, uint32_t n);
uint64_t ss_csum16(const uint8_t *p, uint32_t n);
uint64_t ss_xor16(const uint8_t *p, uint32_t n);
uint64_t ss_xor32(const uint8_t *p, uint32_t n);
uint64_t ss_identity(const uint8_t *p, uint32_t n);

/* Concatenates the input of a hash bit by bit; the caller sizes the buffer. */
struct ss_bits {
    uint8_t *p;
    uint32_t bits;
};
SS_INLINE void ss_bits_add(struct ss_bits *b, uint64_t v, unsigned w) {
    if ((b->bits & 7) == 0 && (w & 7) == 0) {
        for (unsigned i = 0; i < w / 8; i++) b->p[b->bits / 8 + i] = (uint8_t)(v >> (w - 8 - 8 * i));
    } else {
        for (unsigned i = 0; i < w; i++) {
            uint32_t at = b->bits + i;
            if ((at & 7) == 0) b->p[at >> 3] = 0;
            b->p[at >> 3] = (uint8_t)(b->p[at >> 3] | (((v >> (w - 1 - i)) & 1) << (7 - (at & 7))));
        }
    }
    b->bits += w;
}
/* Appends n bits that begin `off` bits into src. */
SS_INLINE void ss_bits_copy(struct ss_bits *b, const uint8_t *src, unsigned off, unsigned n) {
    if (((b->bits | off | n) & 7) == 0) {
        memcpy(b->p + b->bits / 8, src + off / 8, n / 8);
        b->bits += n;
        return;
    }
    for (unsigned i = 0; i < n; i++, off++) ss_bits_add(b, (src[off >> 3] >> (7 - (off & 7))) & 1, 1);
}
SS_INLINE uint32_t ss_bits_bytes(const struct ss_bits *b) { return (b->bits + 7) / 8; }

#pragma GCC visibility pop

#endif
