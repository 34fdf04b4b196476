/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Control functions of the core, called by softswitch/state (Python). Each takes the pipeline's lock.
 */
#ifndef SS_CONTROL_H
#define SS_CONTROL_H

#include "../runtime/program.h"

#pragma GCC visibility push(default)

#define SS_DIGEST_MAX 4096u

/* Results of control functions. */
enum { SS_OK = 0, SS_E_MEMORY = -1, SS_E_RANGE = -2 };

/* An event of the program `generation` (counted by ss_swap): numbers of objects are valid for that program only. */
struct ss_event {
    uint32_t kind, object, handle, bytes, generation;
    uint64_t time_ns;
    uint8_t *data;
};
enum { SS_EV_DIGEST = 1, SS_EV_IDLE = 2 };

struct ss_replica {
    uint32_t port, rid;
};

/* Creates a pipeline for a switch of this many threads. */
struct ss_pipeline *ss_pipeline_open(const char *path, uint64_t seed, uint32_t threads, char *error, uint32_t error_bytes);
void ss_pipeline_close(struct ss_pipeline *pl);
/* `pl` has as many threads as the switch. */
struct ss_pipeline *ss_swap(struct ss_switch *sw, struct ss_pipeline *pl);
uint32_t ss_generation(struct ss_switch *sw);

struct ss_action_spec {
    uint32_t kind, index, words;
    const uint64_t *data;
};
/* Returns the entry's handle, >= 0, or an error. `range` has 2 words for each range field. */
int64_t ss_entry_add(struct ss_pipeline *pl, uint32_t table, const uint64_t *key, const uint64_t *mask, int64_t priority,
                     const uint64_t *range, const struct ss_action_spec *action, uint64_t timeout_ns);
int ss_entry_set(struct ss_pipeline *pl, uint32_t table, uint32_t handle, const struct ss_action_spec *action,
                 uint64_t timeout_ns);
int ss_entry_del(struct ss_pipeline *pl, uint32_t table, uint32_t handle);
int ss_default_set(struct ss_pipeline *pl, uint32_t table, const struct ss_action_spec *action);
/* The handle SS_NONE stands for the default entry. */
int ss_entry_counter(struct ss_pipeline *pl, uint32_t table, uint32_t handle, struct ss_counter *io, int write);
int ss_entry_meter(struct ss_pipeline *pl, uint32_t table, uint32_t handle, const uint64_t *config); /* 4 words or NULL */
int ss_entry_idle(struct ss_pipeline *pl, uint32_t table, uint32_t handle, uint64_t *idle_ns);
int ss_member_set(struct ss_pipeline *pl, uint32_t profile, uint32_t index,
                  const struct ss_action_spec *action); /* NULL removes */
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
/* Takes one event: returns its length in bytes (0: an idle notice), or -1 if there is none. `data` holds SS_DIGEST_MAX
 * bytes. */
int ss_event_take(struct ss_switch *sw, struct ss_event *out, uint8_t *data);

#pragma GCC visibility pop

#endif
