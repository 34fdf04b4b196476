/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The traffic manager: BMv2's ingress_thread and egress_thread (targets/simple_switch/simple_switch.cpp), one frame at a time.
 * The order of checks at the end of ingress is BMv2's: clone, digest, resubmit, multicast, drop, unicast. */
#include "packet.h"

#define TRACE(k, ...) \
    do { \
        if (SS_UNLIKELY((k)->pl->program->traced)) ss_trace(k, 'D', __VA_ARGS__); \
    } while (0)

static struct ss_std *std_of(struct ss_packet *k) { return (struct ss_std *)k->phv; }

/* Appends `k` to a list of work. SS_MAX_PASSES bounds each chain of passes; SS_MAX_RUNS bounds all copies of one frame, since
 * a program that copies and recirculates multiplies them without limit. */
static void append(struct ss_switch *sw, struct ss_packet **head, struct ss_packet **tail, struct ss_packet *k) {
    if (sw->runs++ >= SS_MAX_RUNS) {
        sw->stats.loops_cut++;
        ss_packet_free(sw, k);
        return;
    }
    k->next = NULL;
    if (*tail)
        (*tail)->next = k;
    else
        *head = k;
    *tail = k;
}

static struct ss_packet *shift(struct ss_packet **head, struct ss_packet **tail) {
    struct ss_packet *k = *head;
    if (k && !(*head = k->next)) *tail = NULL;
    return k;
}

static void stamp(struct ss_switch *sw, struct ss_packet *k, uint64_t now_ns) {
    k->now_ns = now_ns;
    k->now_us = now_ns > sw->start_ns ? (now_ns - sw->start_ns) / 1000 : 0;
}

/* Appends to a queue of the port; consumes `k`. */
static void enqueue(struct ss_switch *sw, struct ss_packet *k, uint32_t port) {
    struct ss_port *p = ss_port(sw, port);
    if (!p) {
        sw->stats.bad_port++;
        ss_packet_free(sw, k);
        return;
    }
    struct ss_std *std = std_of(k);
    uint32_t queue = sw->n_queues > 1 ? std->priority : 0;
    if (queue >= sw->n_queues) {
        TRACE(k, "Priority %u out of range, dropping packet", queue);
        p->stats.queue_drops++;
        ss_packet_free(sw, k);
        return;
    }
    k->out_port = port;
    k->queue = (uint8_t)queue;
    k->enq_us = k->now_us;
    std->enq_timestamp = (uint32_t)k->now_us;
    int is_queued = p->rate || p->queues[queue].rate || p->depth;
    uint32_t backlog = is_queued ? ss_port_backlog(p, queue, k->now_ns) : 0;
    std->enq_qdepth = (backlog + p->link_packets) & 0x7ffff;
    if (!is_queued)
        append(sw, &sw->egress_head, &sw->egress_tail, k);
    else if (ss_port_push(sw, p, port, k, backlog) != 0)
        ss_packet_free(sw, k);
}

/* Makes one copy per replica, the last one of `k` itself; consumes `k`. */
static void replicate(struct ss_switch *sw, struct ss_packet *k, const struct ss_replicas *r) {
    if (r->count == 0) {
        sw->stats.empty_group++;
        ss_packet_free(sw, k);
    }
    for (uint32_t i = 0; i < r->count; i++) {
        TRACE(k, "Replicating packet on port %u", r->list[i].port);
        int is_last = i + 1 == r->count;
        struct ss_packet *c = is_last ? k : ss_packet_copy(sw, k);
        if (!c) {
            ss_packet_free(sw, k);
            break;
        }
        if (is_last) ss_packet_renumber(sw, k);
        std_of(c)->egress_rid = r->list[i].rid;
        enqueue(sw, c, r->list[i].port);
    }
}

/* Returns a packet for a new pass of `frame` through the parser. */
static struct ss_packet *new_pass(struct ss_switch *sw, const struct ss_packet *k, const uint8_t *frame, uint32_t len,
                                  struct ss_buf *buf) {
    struct ss_packet *c = ss_packet_new(sw, k->pl);
    if (!c) return NULL;
    c->frame = frame;
    c->frame_len = len;
    c->buf = buf;
    if (buf) buf->refs++;
    c->now_ns = k->now_ns;
    c->now_us = k->now_us;
    c->ingress_length = k->ingress_length;
    c->length = len;
    c->passes = k->passes;
    c->id = k->id;
    c->copy = ++sw->copies;
    return c;
}

static void keep_fields(struct ss_packet *c, const struct ss_packet *k, uint32_t list, enum ss_instance type) {
    c->pl->program->reset_metadata(c->phv);
    c->pl->program->copy_fields(c->phv, k->phv, list);
    std_of(c)->instance_type = type;
}

static const struct ss_replicas *session(struct ss_switch *sw, const struct ss_packet *k) {
    const struct ss_replicas *r = &k->pl->pre->clones[k->clone & (SS_CLONE_SET - 1)];
    if (r->count) return r;
    sw->stats.bad_clone++;
    return NULL;
}

static void cut(struct ss_packet *k, uint32_t bytes) {
    if (bytes && bytes < k->truncate) k->truncate = bytes;
}

/* The clone starts from the frame as received, and is parsed again. */
static void clone_ingress(struct ss_switch *sw, struct ss_packet *k) {
    const struct ss_replicas *r = session(sw, k);
    struct ss_packet *c = r ? new_pass(sw, k, k->frame, k->frame_len, k->buf) : NULL;
    uint32_t list = k->clone_list;
    TRACE(k, "Cloning packet at ingress");
    k->clone = k->clone_list = 0;
    if (!c) return;
    std_of(c)->ingress_port = std_of(k)->ingress_port;
    c->pl->program->parse(c);
    keep_fields(c, k, list, SS_INGRESS_CLONE);
    for (uint32_t i = 0; i < r->count; i++) {
        struct ss_packet *copy = ss_packet_copy(sw, c);
        if (!copy) break;
        cut(copy, r->cut);
        TRACE(copy, "Cloning packet to egress port %u", r->list[i].port);
        std_of(copy)->egress_rid = r->list[i].rid;
        enqueue(sw, copy, r->list[i].port);
    }
    ss_packet_free(sw, c);
}

static void clone_egress(struct ss_switch *sw, struct ss_packet *k) {
    const struct ss_replicas *r = session(sw, k);
    uint32_t list = k->clone_list;
    TRACE(k, "Cloning packet at egress");
    k->clone = k->clone_list = 0;
    for (uint32_t i = 0; r && i < r->count; i++) {
        struct ss_packet *c = ss_packet_copy(sw, k);
        if (!c) return;
        if (++c->passes > SS_MAX_PASSES) {
            sw->stats.loops_cut++;
            ss_packet_free(sw, c);
            return;
        }
        keep_fields(c, k, list, SS_EGRESS_CLONE);
        cut(c, r->cut);
        TRACE(c, "Cloning packet to egress port %u", r->list[i].port);
        std_of(c)->egress_rid = r->list[i].rid;
        enqueue(sw, c, r->list[i].port);
    }
}

static void learn(struct ss_switch *sw, struct ss_packet *k) {
    uint8_t data[SS_DIGEST_MAX];
    uint32_t list = k->digest;
    if (list > k->pl->program->n_digests || !k->pl->digest_on[list - 1]) return;
    uint32_t bytes = k->pl->program->digest(k, list, data);
    ss_event_push(sw, SS_EV_DIGEST, list, 0, data, bytes);
}

static int enqueue_pass(struct ss_switch *sw, struct ss_packet *k, struct ss_packet *c) {
    if (!c) return 0;
    c->passes = (uint16_t)(k->passes + 1);
    if (c->passes <= SS_MAX_PASSES) {
        append(sw, &sw->recirculate_head, &sw->recirculate_tail, c);
        return 1;
    }
    sw->stats.loops_cut++;
    ss_packet_free(sw, c);
    return 0;
}

static void resubmit(struct ss_switch *sw, struct ss_packet *k) {
    struct ss_packet *c = new_pass(sw, k, k->frame, k->frame_len, k->buf);
    if (c) {
        keep_fields(c, k, k->resubmit, SS_RESUBMIT);
        std_of(c)->packet_length = k->frame_len;
    }
    enqueue_pass(sw, k, c);
}

/* Runs parser and ingress. */
static void enter(struct ss_packet *k) {
    const struct ss_program *g = k->pl->program;
    TRACE(k, "Processing packet received on port %u", std_of(k)->ingress_port);
    g->parse(k);
    g->ingress(k);
}

/* Ends ingress; consumes `k`. */
static void finish_ingress(struct ss_switch *sw, struct ss_packet *k) {
    const struct ss_program *g = k->pl->program;
    struct ss_std *std = std_of(k);
    k->exited = 0;
    if (k->failed) {
        sw->stats.asserts_failed++;
        ss_packet_free(sw, k);
        return;
    }
    if (k->clone) clone_ingress(sw, k);
    if (k->digest) learn(sw, k);
    if (k->resubmit) {
        TRACE(k, "Resubmitting packet");
        resubmit(sw, k);
        ss_packet_free(sw, k);
    } else if (g->has_mcast && std->mcast_grp) {
        TRACE(k, "Multicast requested for packet");
        std->instance_type = SS_REPLICATION;
        replicate(sw, k, &k->pl->pre->groups[std->mcast_grp & 0xffff]);
    } else if (std->egress_spec == sw->drop_port) {
        TRACE(k, "Egress port is %u", std->egress_spec);
        TRACE(k, "Dropping packet at the end of ingress");
        sw->stats.ingress_drops++;
        ss_packet_free(sw, k);
    } else {
        TRACE(k, "Egress port is %u", std->egress_spec);
        std->instance_type = SS_NORMAL;
        enqueue(sw, k, std->egress_spec);
    }
}

/* Returns where the frame is, NULL if it is too long. */
static const uint8_t *deparse(struct ss_switch *sw, struct ss_packet *k, uint32_t *len) {
    const struct ss_program *g = k->pl->program;
    g->update_checksums(k);
    uint32_t head = g->headers_bytes(k);
    if (head + (uint64_t)k->payload_len > SS_MAX_FRAME) {
        sw->stats.too_long++;
        return NULL;
    }
    *len = head + k->payload_len;
    uint8_t *out = sw->buffer && !k->recirculate ? sw->buffer(sw->tx_ctx, k->out_port, *len) : NULL;
    if (!out) out = sw->out;
    g->deparse(k, out);
    if (k->payload_len) memcpy(out + head, k->payload, k->payload_len);
    return out;
}

static void recirculate(struct ss_switch *sw, struct ss_packet *k, uint32_t len) {
    struct ss_buf *buf = ss_buf_new(len);
    if (!buf) {
        sw->stats.no_memory++;
        return;
    }
    memcpy(buf->data, sw->out, len);
    struct ss_packet *c = new_pass(sw, k, buf->data, len, buf);
    ss_buf_drop(buf);
    if (c) {
        keep_fields(c, k, k->recirculate, SS_RECIRC);
        c->ingress_length = std_of(c)->packet_length = len;
    }
    enqueue_pass(sw, k, c);
}

static void run_egress(struct ss_switch *sw, struct ss_packet *k) {
    const struct ss_program *g = k->pl->program;
    struct ss_std *std = std_of(k);
    struct ss_port *p = ss_port(sw, k->out_port);
    std->egress_global_timestamp = k->now_us & 0xffffffffffffULL;
    std->deq_timedelta = (uint32_t)(k->now_us - k->enq_us) + p->link_wait_us;
    std->deq_qdepth = (p->queues[k->queue].depth + p->link_packets) & 0x7ffff;
    std->qid = k->queue;
    std->egress_port = k->out_port & g->egress_spec_mask;
    std->egress_spec = (sw->drop_port + 1) & g->egress_spec_mask;
    std->packet_length = k->length;
    g->egress(k);
    k->exited = 0;
    if (k->failed) sw->stats.asserts_failed++;
    if (k->clone && !k->failed) clone_egress(sw, k);
    if (!k->failed && std->egress_spec == sw->drop_port) {
        TRACE(k, "Dropping packet at the end of egress");
        sw->stats.egress_drops++;
        k->failed = 1;
    }
    uint32_t len = 0;
    const uint8_t *out = k->failed ? NULL : deparse(sw, k, &len);
    if (out && k->recirculate) {
        TRACE(k, "Recirculating packet");
        recirculate(sw, k, len);
    } else if (out) {
        if (len > k->truncate) len = k->truncate;
        p->stats.tx_packets++;
        p->stats.tx_bytes += len;
        TRACE(k, "Transmitting packet of size %u out of port %u", len, k->out_port);
        if (sw->dump_bytes) ss_dump(sw, "Sending", k->out_port, out, len);
        if (sw->tx) sw->tx(sw->tx_ctx, k->out_port, out, len);
    }
    ss_packet_free(sw, k);
}

/* Processes all copies of one frame, in the order of their creation. */
static void drain(struct ss_switch *sw) {
    for (;;) {
        struct ss_packet *k;
        if ((k = shift(&sw->egress_head, &sw->egress_tail))) {
            run_egress(sw, k);
        } else if ((k = shift(&sw->recirculate_head, &sw->recirculate_tail))) {
            enter(k);
            finish_ingress(sw, k);
        } else {
            break;
        }
    }
    sw->runs = 0;
}

/* Hands the frame to the thread whose registers it needs, which counts it. */
static void hand_over(struct ss_switch *sw, struct ss_port *from, const struct ss_packet *k, uint32_t port) {
    from->stats.rx_packets--;
    from->stats.rx_bytes -= k->frame_len;
    sw->stats.handed_over++;
    if (sw->handover) sw->handover(sw->handover_ctx, k->owner, port, k->frame, k->frame_len);
}

void ss_receive(struct ss_switch *sw, uint32_t port, const uint8_t *data, uint32_t len, uint64_t now_ns) {
    sw->last_ns = now_ns;
    struct ss_port *p = ss_port(sw, port);
    if (!p) return;
    p->stats.rx_packets++;
    p->stats.rx_bytes += len;
    if (sw->dump_bytes) ss_dump(sw, "Received", port, data, len);
    if (len > SS_MAX_FRAME) {
        sw->stats.rx_oversize++;
        return;
    }
    if (!sw->pl) {
        sw->stats.no_pipeline++;
        return;
    }
    struct ss_packet *k = ss_packet_new(sw, sw->pl);
    if (!k) return;
    k->id = sw->frames++ * sw->threads + sw->shard;
    sw->copies = 0;
    k->frame = data;
    k->frame_len = k->length = k->ingress_length = len;
    stamp(sw, k, now_ns);
    struct ss_std *std = std_of(k);
    std->ingress_port = port & sw->pl->program->egress_spec_mask;
    std->packet_length = len;
    std->ingress_global_timestamp = k->now_us & 0xffffffffffffULL;
    enter(k);
    if (k->owner != sw->shard) {
        hand_over(sw, p, k, port);
        ss_packet_free(sw, k);
        return;
    }
    finish_ingress(sw, k);
    drain(sw);
}

/* Sends the due packets in time order per port. A scan suffices: there are few ports. */
uint64_t ss_service(struct ss_switch *sw, uint64_t now_ns) {
    sw->last_ns = now_ns;
    uint64_t next = SS_NEVER;
    for (uint32_t i = 0; i < sw->n_busy;) {
        uint32_t port = sw->busy[i];
        struct ss_port *p = ss_port(sw, port);
        uint32_t queue;
        uint64_t start = ss_port_next(p, &queue);
        int is_held = ss_port_release_ns(p, start) > now_ns;
        for (; !is_held && start <= now_ns; start = ss_port_next(p, &queue)) {
            struct ss_packet *k = ss_port_pop(p, queue);
            struct ss_queue *q = &p->queues[queue];
            stamp(sw, k, p->rate || q->rate ? start : now_ns);
            uint64_t before = p->stats.tx_bytes;
            run_egress(sw, k);
            drain(sw);
            if (p->rate) {
                uint64_t frame_ns = (uint64_t)((unsigned __int128)(p->stats.tx_bytes - before) * 8000000000u / p->rate);
                ss_port_occupy_link(p, start, frame_ns);
            }
            if (q->rate) q->free_ns = start + 1000000000u / q->rate;
        }
        if (start == SS_NEVER) {
            ss_port_mark_idle(sw, p);
            continue;
        }
        uint64_t release = ss_port_release_ns(p, start);
        if (release < next) next = release;
        i++;
    }
    if (sw->shard) return next;
    if (now_ns >= sw->next_age_ns) sw->next_age_ns = ss_age(sw, now_ns);
    return sw->next_age_ns < next ? sw->next_age_ns : next;
}
