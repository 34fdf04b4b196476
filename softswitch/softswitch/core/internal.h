/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * State and functions shared by the files of the core.
 */
#ifndef SS_INTERNAL_H
#define SS_INTERNAL_H

#include <stdatomic.h>
#include <stdlib.h>

#include "../runtime/lock.h"
#include "../runtime/program.h"
#include "control.h"

#define SS_MAX_PASSES 64u  /* passes through ingress that one frame may make */
#define SS_MAX_RUNS 16384u /* runs of ingress or egress that one received frame may cause */
#define SS_POOL 1024u      /* size of the free list of packet objects */
#define SS_RING 4096u      /* events that can wait */

/* Packets and buffers. */
struct ss_buf {
    uint32_t refs;
    uint8_t data[];
};
struct ss_pool {
    struct ss_packet *free;
    uint32_t count;
};
static inline struct ss_big *ss_bigs(struct ss_packet *k) { return (struct ss_big *)(k->phv + k->pl->program->big_at); }
struct ss_packet *ss_packet_make(struct ss_switch *sw, const struct ss_pipeline *pl); /* one more object */
void ss_packet_unmake(struct ss_packet *k);
int ss_packet_keep(struct ss_switch *sw,
                   struct ss_packet *k); /* copies the payload, which otherwise is valid within ss_receive only */
int ss_blocks_add(const struct ss_program *g, const struct ss_shard *s, uint32_t count); /* SS_E_MEMORY: none were added */
void ss_blocks_remove(const struct ss_shard *s, uint32_t count); /* they must be free */
struct ss_buf *ss_buf_new(uint32_t bytes);
void ss_pool_clear(struct ss_pool *p);

/* Replication. */
struct ss_replicas {
    uint32_t count, cut;
    struct ss_replica *list;
};
struct ss_pre {
    struct ss_replicas *groups, *clones;
}; /* 65,536 and 32,768 of them */
struct ss_pre *ss_pre_new(void);
void ss_pre_free(struct ss_pre *p);

struct ss_queue {
    uint64_t rate, free_ns; /* packets/s, 0 = no limit; when the next packet may leave */
    uint32_t bound, depth;  /* a bound of 0 is the port's */
    uint64_t bytes;         /* of its packets */
    struct ss_packet *head, *tail;
};

struct ss_port {
    struct ss_port_stats stats;
    uint64_t rate, free_ns; /* bit/s; when the link is free */
    uint64_t coalesce_ns;     /* delay that lets several frames leave together */
    uint64_t credit_ns;       /* time that an idle link saves up */
    uint32_t bound, depth;  /* of each queue; of all queues together */
    uint32_t link_packets, link_wait_us; /* behind a port without a rate: ss_port_set_backlog */
    struct ss_queue queues[SS_QUEUES];
    uint32_t busy_at; /* 1 + index in the list of ports with queued packets, 0 = none */
};

/* Each thread of the data plane has one of these, a shard. The first is the switch; it alone has events, idle timeouts and the
 * state of ports. */
struct ss_switch {
    struct ss_lock lock; /* held by the shard's thread in a batch */
    uint32_t shard, threads;
    struct ss_switch **shards; /* the same array in all; the first at 0 */
    ss_handover_fn handover;
    void *handover_ctx;
    struct ss_pipeline *pl;
    uint32_t drop_port, n_queues;
    uint64_t start_ns, seed, last_ns;
    ss_tx_fn tx;
    void *tx_ctx;
    ss_buffer_fn buffer;
    ss_log_fn log;
    void *log_ctx;
    uint32_t dump_bytes; /* bytes of each received and sent frame to log; 0 = none */
    struct ss_port *ports[(SS_MAX_PORT + 1) / 256]; /* blocks of 256 ports */
    uint8_t *up; /* by port; the first shard's; guarded by the running pipeline's locks too */
    uint32_t *busy, n_busy, busy_capacity;              /* ports with something queued */
    struct ss_packet *egress_head, *egress_tail;      /* copies of the current frame before egress */
    struct ss_packet *recirculate_head, *recirculate_tail;      /* its resubmitted and recirculated copies before ingress */
    uint64_t frames;                                /* received so far: packet ids of the trace */
    uint32_t copies;                                /* of the current frame */
    uint32_t runs;                                  /* copies appended to both lists since they were last empty */
    struct ss_pool pool;
    struct ss_stats stats;
    pthread_mutex_t ring_lock; /* guards the ring */
    struct ss_event *ring;
    uint32_t ring_at, ring_count;
    int event_fd;
    uint32_t generation; /* of the program that runs */
    uint64_t next_age_ns;
    uint8_t *out; /* the frame being deparsed */
};

/* NULL: no such port, or no memory for its block. */
static inline struct ss_port *ss_port(struct ss_switch *sw, uint32_t port) {
    if (SS_UNLIKELY(port > SS_MAX_PORT)) return NULL;
    struct ss_port **block = &sw->ports[port / 256];
    if (SS_UNLIKELY(!*block)) *block = calloc(256, sizeof **block);
    return SS_LIKELY(*block != NULL) ? *block + port % 256 : NULL;
}
/* Returns the packets of a queue that an exact link would not have started to send by `now_ns`: its depth, where packets do not
 * coalesce. */
uint32_t ss_port_backlog(const struct ss_port *p, uint32_t queue, uint64_t now_ns);
int ss_port_push(struct ss_switch *sw, struct ss_port *p, uint32_t port, struct ss_packet *k, uint32_t backlog);
struct ss_packet *ss_port_pop(struct ss_port *p, uint32_t queue); /* the queue must not be empty */
/* Returns the queue that sends next, and its time; SS_NEVER if all are empty. */
uint64_t ss_port_next(const struct ss_port *p, uint32_t *queue);
uint64_t ss_port_release_ns(const struct ss_port *p, uint64_t start); /* `start`: of ss_port_next */
void ss_port_occupy_link(struct ss_port *p, uint64_t start, uint64_t frame_ns); /* reserves the link for a frame from `start` */
void ss_port_mark_idle(struct ss_switch *sw, struct ss_port *p); /* removes a port without queued packets from the busy list */
void ss_event_push(struct ss_switch *sw, uint32_t kind, uint32_t object, uint32_t handle, const uint8_t *data, uint32_t bytes);
uint64_t ss_age(struct ss_switch *sw, uint64_t now_ns);
void ss_ages_start(struct ss_pipeline *pl, uint64_t now_ns);

/* Recomputes the live members of every group. Requires the pipeline's lock. */
void ss_groups_update_live(struct ss_pipeline *pl);

/* Stops all threads of the data plane between two batches: takes the locks of all shards, in order. A switch's are taken before
 * those of its pipeline. */
void ss_pipeline_lock(const struct ss_pipeline *pl);
void ss_pipeline_unlock(const struct ss_pipeline *pl);
void ss_switch_lock(const struct ss_switch *sw);
void ss_switch_unlock(const struct ss_switch *sw);

static inline uint64_t ss_last_hit(const struct ss_entry *e) { return __atomic_load_n(&e->last_hit_ns, __ATOMIC_RELAXED); }

/* Tables. */
int ss_table_init(struct ss_table *t, const struct ss_table_desc *d, struct ss_profile *profiles, uint32_t threads);
void ss_table_free(struct ss_table *t);
void ss_entry_free(struct ss_entry *e);
int ss_tuple_link(struct ss_table *t, struct ss_entry *e, uint32_t handle); /* into its tuple, created if missing */
void ss_tuple_unlink(struct ss_table *t, struct ss_entry *e, uint32_t handle);
void ss_tuples_free(struct ss_table *t);

/* Heaps of entries. An entry stores its index, so removal takes logarithmic time. */
int ss_heap_add(struct ss_heap *h, struct ss_entry **entries, uint32_t handle, enum ss_order by);
void ss_heap_remove(struct ss_heap *h, struct ss_entry **entries, uint32_t handle, enum ss_order by);
void ss_heap_move(struct ss_heap *h, struct ss_entry **entries, uint32_t handle, enum ss_order by); /* after its key changed */

/* Change a tree of intervals; both return the new root. */
uint32_t ss_interval_insert(const struct ss_table *t, uint32_t root, uint32_t handle);
uint32_t ss_interval_remove(const struct ss_table *t, uint32_t root, uint32_t handle);

/* Sets an idle timeout. Requires the pipeline's lock. */
int ss_age_set(struct ss_pipeline *pl, struct ss_table *t, uint32_t handle, uint64_t timeout_ns);

/* Logs the first bytes of a frame: see ss_set_dump. */
void ss_dump(struct ss_switch *sw, const char *what, uint32_t port, const uint8_t *data, uint32_t len);

#endif
