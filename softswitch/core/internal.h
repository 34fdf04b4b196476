/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the core share, and the control functions that softswitch/state/ (Python) calls.
 */
#ifndef SS_INTERNAL_H
#define SS_INTERNAL_H

#include <stdatomic.h>
#include <stdlib.h>

#include "../runtime/lock.h"
#include "../runtime/program.h"

#define SS_MAX_PASSES 64u  /* passes through ingress that one frame may make */
#define SS_MAX_RUNS 16384u /* runs of ingress or egress that one received frame may cause */
#define SS_POOL 1024u      /* packet objects kept for use again */
#define SS_RING 4096u      /* events that can wait */
#define SS_DIGEST_MAX 4096u

/* Control results. */
enum { SS_OK = 0, SS_E_MEMORY = -1, SS_E_RANGE = -2 };

/* Packets and buffers. */
struct ss_buf { uint32_t refs; uint8_t data[]; };
struct ss_pool { struct ss_packet *free; uint32_t count; };
struct ss_packet *ss_packet_new(struct ss_switch *sw, struct ss_pipeline *pl);
struct ss_packet *ss_packet_copy(struct ss_switch *sw, const struct ss_packet *k);
void ss_packet_free(struct ss_switch *sw, struct ss_packet *k);
int ss_packet_keep(struct ss_switch *sw, struct ss_packet *k); /* own the payload beyond ss_receive */
struct ss_buf *ss_buf_new(uint32_t bytes);
void ss_buf_drop(struct ss_buf *b);
void ss_pool_clear(struct ss_pool *p);

/* Replication. */
struct ss_replica { uint32_t port, rid; };
struct ss_replicas { uint32_t count, cut; struct ss_replica *list; };
struct ss_pre { struct ss_replicas *groups, *clones; }; /* 65,536 and 32,768 of them */
struct ss_pre *ss_pre_new(void);
void ss_pre_free(struct ss_pre *p);

/* Events. */
/* `generation`: which program it came about in, counted by ss_swap; others read its numbers wrong. */
struct ss_event { uint32_t kind, object, handle, bytes, generation; uint64_t time_ns; uint8_t *data; };
enum { SS_EV_DIGEST = 1, SS_EV_IDLE = 2 };

struct ss_queue {
  uint64_t rate, free_ns; /* packets/s, 0 = no limit; when the next one may leave */
  uint32_t bound, depth;  /* a bound of 0 is the port's */
  struct ss_packet *head, *tail;
};

struct ss_port {
  struct ss_port_stats stats;
  uint64_t rate, free_ns; /* bit/s; when the line is free again */
  uint64_t gather_ns;     /* how long frames wait for the line so that some leave at once */
  uint32_t bound, depth;  /* of each queue; of all together */
  struct ss_queue queues[SS_QUEUES];
  uint32_t busy_at; /* 1 + place in the list of ports with a queue, 0 = none */
};

struct ss_switch {
  struct ss_lock lock;
  struct ss_pipeline *pl;
  uint32_t drop_port, n_queues;
  uint64_t start_ns, seed, last_ns;
  ss_tx_fn tx;
  void *tx_ctx;
  ss_log_fn log;
  void *log_ctx;
  uint32_t dump_bytes; /* of each frame that comes and goes, into the log; 0 = no such line */
  struct ss_port *ports[(SS_MAX_PORT + 1) / 256]; /* blocks of 256 ports */
  uint8_t up[SS_MAX_PORT + 1];                    /* by port; also under the running pipeline's lock */
  uint32_t *busy, n_busy, busy_room;              /* ports with something queued */
  struct ss_packet *ready_head, *ready_tail;      /* egress work of the frame in hand */
  struct ss_packet *again_head, *again_tail;      /* resubmitted and recirculated */
  uint64_t frames;                                /* received so far: the trace's numbers */
  uint32_t copies;                                /* of the frame in hand */
  uint32_t runs;                                  /* what was put into both since they were last empty */
  struct ss_pool pool;
  struct ss_stats stats;
  struct ss_event *ring;
  uint32_t ring_at, ring_count;
  int event_fd;
  uint32_t generation; /* of the program that runs */
  uint64_t next_age_ns;
  uint8_t *out; /* the frame being deparsed */
};

struct ss_port *ss_port(struct ss_switch *sw, uint32_t port);
int ss_port_push(struct ss_switch *sw, struct ss_port *p, uint32_t port, struct ss_packet *k);
struct ss_packet *ss_port_pop(struct ss_port *p, uint32_t queue); /* from one that is not empty */
/* The queue that may send next, and when; SS_NEVER if all are empty. */
uint64_t ss_port_next(const struct ss_port *p, uint32_t *queue);
uint64_t ss_port_gather(const struct ss_port *p, uint64_t frame_ns); /* `frame_ns`: of the last frame on the line */
void ss_port_busy(struct ss_port *p, uint64_t start, uint64_t frame_ns); /* the line is, with a frame from `start` on */
void ss_port_rest(struct ss_switch *sw, struct ss_port *p); /* its queue is empty: no longer among the busy ones */
void ss_event_push(struct ss_switch *sw, uint32_t kind, uint32_t object, uint32_t handle, const uint8_t *data, uint32_t bytes);
uint64_t ss_age(struct ss_switch *sw, uint64_t now_ns);
void ss_start_ages(struct ss_pipeline *pl, uint64_t now_ns);

/* Selects the live members of every group anew; inside the pipeline's lock. */
void ss_groups_follow(struct ss_pipeline *pl);

/* Tables. */
int ss_table_init(struct ss_table *t, const struct ss_table_desc *d, struct ss_profile *profiles);
void ss_table_free(struct ss_table *t);
void ss_entry_free(struct ss_entry *e);
int ss_tuple_link(struct ss_table *t, struct ss_entry *e, uint32_t handle); /* into its tuple, made if missing */
void ss_tuple_unlink(struct ss_table *t, struct ss_entry *e, uint32_t handle);
void ss_tuples_free(struct ss_table *t);

/* Heaps of entries; each knows its place, so that it is taken out in logarithmic time. */
int ss_heap_add(struct ss_heap *h, struct ss_entry **entries, uint32_t handle, enum ss_order by);
void ss_heap_remove(struct ss_heap *h, struct ss_entry **entries, uint32_t handle, enum ss_order by);
void ss_heap_move(struct ss_heap *h, struct ss_entry **entries, uint32_t handle, enum ss_order by); /* its order has changed */

/* Trees of intervals; both return the new root. */
uint32_t ss_interval_insert(const struct ss_table *t, uint32_t root, uint32_t handle);
uint32_t ss_interval_remove(const struct ss_table *t, uint32_t root, uint32_t handle);

/* Timeouts; inside the pipeline's lock. */
int ss_age_set(struct ss_pipeline *pl, struct ss_table *t, uint32_t handle, uint64_t timeout_ns);

/* ---- control functions; each takes the pipeline's lock ---- */
struct ss_pipeline *ss_pipeline_open(const char *path, uint64_t seed, char *error, uint32_t error_bytes);
void ss_pipeline_close(struct ss_pipeline *pl);
struct ss_pipeline *ss_swap(struct ss_switch *sw, struct ss_pipeline *pl);
uint32_t ss_generation(struct ss_switch *sw);

struct ss_action_spec { uint32_t kind, index, words; const uint64_t *data; };
/* Returns the entry's handle, >= 0, or an error. `range` has 2 words for each range field. */
int64_t ss_entry_add(struct ss_pipeline *pl, uint32_t table, const uint64_t *key, const uint64_t *mask, int64_t priority,
                     const uint64_t *range, const struct ss_action_spec *action, uint64_t timeout_ns);
int ss_entry_set(struct ss_pipeline *pl, uint32_t table, uint32_t handle, const struct ss_action_spec *action, uint64_t timeout_ns);
int ss_entry_del(struct ss_pipeline *pl, uint32_t table, uint32_t handle);
int ss_default_set(struct ss_pipeline *pl, uint32_t table, const struct ss_action_spec *action);
/* handle SS_NONE = the default entry. */
int ss_entry_counter(struct ss_pipeline *pl, uint32_t table, uint32_t handle, struct ss_counter *io, int write);
int ss_entry_meter(struct ss_pipeline *pl, uint32_t table, uint32_t handle, const uint64_t *config); /* 4 words or NULL */
int ss_entry_idle(struct ss_pipeline *pl, uint32_t table, uint32_t handle, uint64_t *idle_ns);
int ss_member_set(struct ss_pipeline *pl, uint32_t profile, uint32_t index, const struct ss_action_spec *action); /* NULL removes */
/* `watch` has a port for each member, or SS_NONE. */
int ss_group_set(struct ss_pipeline *pl, uint32_t profile, uint32_t index, const uint32_t *members, const uint32_t *watch,
                 uint32_t count);
int ss_counter_io(struct ss_pipeline *pl, uint32_t counter, uint32_t first, uint32_t count, struct ss_counter *io, int write);
int ss_meter_set(struct ss_pipeline *pl, uint32_t meter, uint32_t first, uint32_t count, const uint64_t *config);
int ss_register_io(struct ss_pipeline *pl, uint32_t reg, uint32_t first, uint32_t count, uint8_t *bytes, int write);
int ss_vset_set(struct ss_pipeline *pl, uint32_t vset, const uint64_t *members, uint32_t count);
int ss_group_replicas(struct ss_pipeline *pl, uint32_t group, const struct ss_replica *list, uint32_t count);
int ss_clone_replicas(struct ss_pipeline *pl, uint32_t session, const struct ss_replica *list, uint32_t count, uint32_t cut);
int ss_digest_enable(struct ss_pipeline *pl, uint32_t list, int on);
/* Takes one event: returns its bytes (0 for an idle notice), or -1 if there is none. `data` has room for SS_DIGEST_MAX. */
void ss_dump(struct ss_switch *sw, const char *what, uint32_t port, const uint8_t *data, uint32_t len);
int ss_event_take(struct ss_switch *sw, struct ss_event *out, uint8_t *data);

#endif
