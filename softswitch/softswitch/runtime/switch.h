/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The switch core as an I/O engine sees it.
 *
 * Where the code lives. The core (softswitch/core, C) is compiled once into a shared object of its own. The Python
 * side (`softswitch.build.native.core_library`) builds it and loads it with RTLD_GLOBAL *before* anything else; a translated program
 * and an I/O engine are further shared objects of the same process, which leave the ss_* symbols undefined and get
 * them from the core when they are loaded. `softswitch.state.switch.Switch.handle` is the `struct ss_switch *` as an integer.
 *
 * Time. The core never reads a clock and never sleeps: every call that needs the time takes `now_ns`, nanoseconds of one
 * clock that never goes back (CLOCK_MONOTONIC). A program's timestamps are microseconds since `ss_switch_new`'s `start_ns`.
 *
 * Locks. A mutex for each thread guards the data plane. An engine brackets each batch with ss_begin / ss_end and calls the
 * functions marked [batch] only in between, from one thread at a time. Control operations take the mutexes of all threads, so
 * each takes effect between two packets; they are fair, so ss_begin queues behind a waiting one. The functions marked [control] take it themselves: never call them inside
 * a batch. The `tx` callback runs inside the batch; it must not call back into the core.
 *
 * A frame's life: ss_receive -> parser -> ingress -> traffic manager (clones, multicast, resubmit) -> queue of the
 * egress port -> egress -> deparser -> tx. A port without a rate has no queue: its packets run egress and leave within
 * ss_receive. A port with a rate leaves them in its queue, before the egress control, as BMv2 does; ss_service runs
 * egress for those that are due and hands them to tx. So enq_qdepth, deq_qdepth and deq_timedelta are those of the emulated link;
 * without a rate those of the real one, as far as the engine sees it (ss_port_set_backlog).
 */
#ifndef SS_SWITCH_H
#define SS_SWITCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SS_NEVER UINT64_MAX   /* no deadline */
#define SS_MAX_FRAME 65535u   /* longest frame taken or sent, bytes; without FCS */
#define SS_MAX_PORT 65535u    /* port numbers are 0..SS_MAX_PORT; v1model's PortId_t of 9 bits uses 0..511 */
#define SS_MAX_THREADS 16u

#pragma GCC visibility push(default)

struct ss_switch;

/* Hands one frame to the wire. `data` is valid during the call only. The CPU port's frames are sent in this way, too. */
typedef void (*ss_tx_fn)(void *ctx, uint32_t port, const uint8_t *data, uint32_t len);

/* Creates a switch without a pipeline: it drops every frame until one is swapped in (softswitch.state.switch.Switch.swap).
 * `drop_port`: the egress_spec that means drop, 511 in v1model. Returns NULL when out of memory. */
struct ss_switch *ss_switch_new(uint32_t drop_port, uint64_t start_ns, uint64_t seed);
void ss_switch_free(struct ss_switch *sw);

/* [control] Sets the transmit callback, and removes that of ss_set_buffer. Without one frames are counted and dropped. */
void ss_set_tx(struct ss_switch *sw, ss_tx_fn tx, void *ctx);

/* [control] Sets a callback, with the context of the transmit callback, that names the `bytes` where a frame for `port` is to be
 * written: the transmit callback then gets that place. NULL from it, or no callback (initial): a place of the switch. */
typedef uint8_t *(*ss_buffer_fn)(void *ctx, uint32_t port, uint32_t bytes);
void ss_set_buffer(struct ss_switch *sw, ss_buffer_fn buffer);

/* Divides the data plane among `count` threads, a power of two of at most SS_MAX_THREADS. Each has a shard: a struct ss_switch
 * for the functions marked [batch], for ss_set_tx and ss_set_handover; the first is `sw`, and takes the others. A frame whose
 * registers are another shard's goes there through the callback `handover`, within the batch; without one it is lost. Rates of
 * ports and queues are refused from then on. Before any pipeline, port and packet. -1: another count, or out of memory. */
int ss_set_threads(struct ss_switch *sw, uint32_t count);
struct ss_switch *ss_switch_shard(struct ss_switch *sw, uint32_t index); /* NULL: no such one */
typedef void (*ss_handover_fn)(void *ctx, uint32_t shard, uint32_t port, const uint8_t *data, uint32_t len);
void ss_set_handover(struct ss_switch *sw, ss_handover_fn handover, void *ctx);

/* Enter and leave the data plane, once per batch. */
void ss_begin(struct ss_switch *sw);
/* [batch] Returns whether the program can read arrival times: then pass each frame its own `now_ns`, otherwise one per
 * batch. */
int ss_times_frames(const struct ss_switch *sw);
void ss_end(struct ss_switch *sw);

/* [batch] Processes one received frame up to its egress queues. Neither changes nor keeps `data`. Any length and content is
 * safe; a frame above SS_MAX_FRAME is counted in `rx_oversize` and dropped. */
void ss_receive(struct ss_switch *sw, uint32_t port, const uint8_t *data, uint32_t len, uint64_t now_ns);

/* Before an engine passes a frame it loads the one this many behind into the cache, or its beginning if it is a long run. */
#define SS_FRAMES_AHEAD 2u
#define SS_PREFETCHED 4096u
static inline void ss_prefetch_frame(const uint8_t *data, uint32_t len) {
    for (uint32_t i = 0; i < len && i < SS_PREFETCHED; i += 64) __builtin_prefetch(data + i);
}

/* [batch] Releases every queued frame that is due at `now_ns` and does the timed work of the core (idle timeouts).
 * Returns the next instant it wants to be called, SS_NEVER if none. Call it after each batch of ss_receive as well: an
 * arrival can bring the deadline forward. Cheap when nothing is due. */
uint64_t ss_service(struct ss_switch *sw, uint64_t now_ns);

/* [control] The emulated link behind a port: `rate_bps` in bits per second of frame bytes (no preamble, no FCS), 0 = no
 * limit and no queue; `queue_packets` >= 1 is the bound of the queue, beyond which arrivals are dropped (tail drop, counted
 * in `queue_drops`). Frames already queued stay. Returns 0, or -1 for a port above SS_MAX_PORT, or a bound of 0 or above
 * 65,536 with a rate. */
int ss_port_config(struct ss_switch *sw, uint32_t port, uint64_t rate_bps, uint32_t queue_packets);
/* [control] Returns its rate; 0 for a port above SS_MAX_PORT. */
uint64_t ss_port_rate(struct ss_switch *sw, uint32_t port);

/* [batch] The queue behind a port without a rate, which the kernel or the device holds: its packets, and how long the first one
 * has waited. They are a packet's enq_qdepth, deq_qdepth and deq_timedelta there until the next call. The start: none. */
void ss_port_set_backlog(struct ss_switch *sw, uint32_t port, uint32_t packets, uint32_t wait_us);

/* Queues of each port, `standard_metadata.priority` chooses: the highest number goes first. With one (the start) priority is
 * not looked at; else a packet whose priority is too high is dropped and counted in `queue_drops`. Before any packet. Returns
 * 0, or -1 for a number that is not in 1..SS_QUEUES. */
#define SS_QUEUES 8u
#define SS_KEEP UINT64_MAX
int ss_set_queues(struct ss_switch *sw, uint32_t count);

/* [control] One queue of a port, in addition to the port's own rate: `rate_pps` in packets per second, 0 = no limit; `bound`
 * in packets, 0 = that of the port. SS_KEEP leaves either as it is. Returns 0, or -1 for what is out of range. */
int ss_queue_config(struct ss_switch *sw, uint32_t port, uint32_t queue, uint64_t rate_pps, uint64_t bound);

/* [control] Whether a port can carry frames now: group members that watch a port which is down are not selected. A port is down
 * initially. Frames are sent to it nevertheless. Returns 0, or -1 for a port above SS_MAX_PORT. */
int ss_port_set_up(struct ss_switch *sw, uint32_t port, int up);

/* Counters of a port. They only grow from the start of the switch. */
struct ss_port_stats {
    uint64_t rx_packets, rx_bytes; /* given to ss_receive */
    uint64_t tx_packets, tx_bytes; /* given to tx */
    uint64_t queue_drops;          /* tail drops of the egress queue */
    uint64_t queue_depth;          /* packets in the egress queue now, or at last behind a port without a rate */
};

/* Counters of the switch as a whole. */
struct ss_stats {
    uint64_t rx_oversize;    /* frames longer than SS_MAX_FRAME */
    uint64_t no_pipeline;    /* frames received without a pipeline */
    uint64_t ingress_drops;  /* egress_spec = drop at the end of ingress */
    uint64_t egress_drops;   /* egress_spec = drop at the end of egress */
    uint64_t bad_port;       /* egress_spec or replica above SS_MAX_PORT */
    uint64_t bad_clone;      /* clone to a session that is not configured */
    uint64_t empty_group;    /* multicast to a group that does not exist or is empty */
    uint64_t loops_cut;      /* passes beyond the bounds of one frame (64 in a row, 16,384 runs in all) */
    uint64_t too_long;       /* a deparsed frame longer than SS_MAX_FRAME */
    uint64_t swap_drops;     /* frames in queues when the pipeline was swapped */
    uint64_t asserts_failed; /* assert() or assume() that did not hold; the frame is dropped */
    uint64_t events_lost;    /* digests or idle notices dropped because the ring was full */
    uint64_t no_memory;      /* copies not made: out of memory */
    uint64_t handed_over;    /* frames given to the thread of their registers */
};

/* [control] Fills `out`; a port never seen reads as zeros. Returns -1 for a port above SS_MAX_PORT. */
int ss_port_stats_get(struct ss_switch *sw, uint32_t port, struct ss_port_stats *out);
/* [control] */
void ss_stats_get(struct ss_switch *sw, struct ss_stats *out);

/* [control] Receives log_msg() text (level 'I') and the trace ('D', 'T'), one message a call, inside the batch. NULL (initial):
 * none. */
typedef void (*ss_log_fn)(void *ctx, char level, const char *text);
void ss_set_log(struct ss_switch *sw, ss_log_fn log, void *ctx);

/* [control] Logs the first `bytes` bytes, at most 4,000, of each frame received and sent (level 'I'); 0 (initial): none. */
void ss_set_dump(struct ss_switch *sw, uint32_t bytes);

/* A bounded ring holds events (digests, idle timeouts) for the control plane; when it is full new events are dropped and
 * counted. This eventfd becomes readable when the ring turns from empty to non-empty; softswitch.state.switch.Switch.events()
 * reads the ring and clears it. Owned by the switch: do not close it. */
int ss_event_fd(const struct ss_switch *sw);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
