/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* What libibverbs is asked for: a device, and for each tree a link: the connection to the next worker with its send
 * buffers, the one from the worker before with its receive buffers. */
#ifndef NETFOLD_ROCE_LINKS_H
#define NETFOLD_ROCE_LINKS_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "control.h"
#include "worker.h"

enum { NR_PACKETS = 170 /* of a message, at most: as NetReduce has it */, NR_UNDER_WAY = 8, NR_RECEIVES = 2 };

struct nr_device {
    struct ibv_context *context;
    struct ibv_pd *domain;
    struct ibv_comp_channel *channel;
    struct ibv_cq *completions;
    enum ibv_mtu mtu;
    uint8_t port;
    int gid_index;
    int timeout, retries;
    enum ibv_wc_status broken; /* the last connection that broke: why; IBV_WC_SUCCESS: none did */
};

/* `credit` messages of at most `packets` packets are under way; there are NR_RECEIVES times as many receives, since one
 * is posted before each send: no message ever comes without one. `sent`, `acknowledged` and `received` count messages since
 * the connections began. */
struct nr_link {
    struct ibv_qp *out, *in;
    struct ibv_mr *registered;
    uint8_t *memory;
    uint64_t sent, acknowledged, received;
    uint32_t first_psn, credit, packets, packet_bytes;
};

enum nr_sort { NR_SENT, NR_RECEIVED };
struct nr_done {
    uint32_t tree;
    enum nr_sort sort;
    uint32_t bytes;
};

enum nr_error nr_device_open(struct nr_device *device, const struct nr_options *options, const char *address,
                             uint32_t lanes, char why[NR_WHY]);
void nr_device_close(struct nr_device *device);

/* New connections with a new first PSN (0: a random one): packets of older ones match nothing any more. */
enum nr_error nr_link_make(struct nr_link *link, struct nr_device *device, uint32_t lanes, uint32_t window,
                           uint32_t first_psn, char why[NR_WHY]);
enum nr_error nr_link_connect(struct nr_link *link, struct nr_device *device, const struct nr_neighbors *neighbors,
                              char why[NR_WHY]);
void nr_link_close(struct nr_link *link);

/* Of the next message that is sent, and of the next one that comes. */
uint32_t *nr_send_buffer(const struct nr_link *link);
uint32_t *nr_receive_buffer(const struct nr_link *link);
/* Sends what is in the send buffer; a receive for the sum is posted first. */
enum nr_error nr_send(struct nr_link *link, uint32_t tree, uint32_t packets, char why[NR_WHY]);

/* At most `room` completions; -1: there are none, and a connection broke, with `why`. What was done before it broke counts. */
int nr_completions(struct nr_device *device, struct nr_done *done, int room, char why[NR_WHY]);
/* Before waiting on the channel's descriptor: it becomes readable with the next completion. */
enum nr_error nr_arm(struct nr_device *device, char why[NR_WHY]);
void nr_take_event(struct nr_device *device);

#endif
