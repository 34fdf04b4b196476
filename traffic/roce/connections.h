/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* libibverbs: a device, and for each tree a queue pair to the successor with send buffers and one from the predecessor with
 * receive buffers. */
#ifndef NETFOLD_ROCE_CONNECTIONS_H
#define NETFOLD_ROCE_CONNECTIONS_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "control.h"
#include "worker.h"

enum { NR_PACKETS = 170 /* of a message, maximum: as in NetReduce */, NR_MAX_CREDIT = 8, NR_RECEIVES_PER_SEND = 2 };

struct nr_device {
    struct ibv_context *context;
    struct ibv_pd *domain;
    struct ibv_comp_channel *channel;
    struct ibv_cq *completions;
    enum ibv_mtu mtu;
    uint8_t port;
    int gid_index;
    int timeout, retries;
    enum ibv_wc_status broken; /* status of the last lost connection; IBV_WC_SUCCESS: none */
};

/* At most `credit` messages of `packets` packets are in flight. There are NR_RECEIVES_PER_SEND times as many receives; one is
 * posted before each send, so no message arrives without a receive. `sent`, `acknowledged` and `received` count messages of the
 * epoch. */
struct nr_connection {
    struct ibv_qp *send_qp, *recv_qp;
    struct ibv_mr *registered;
    uint8_t *memory;
    uint64_t sent, acknowledged, received;
    uint32_t first_psn, credit, packets, packet_bytes;
};

enum nr_completion_type { NR_SENT, NR_RECEIVED };
struct nr_completion {
    uint32_t tree;
    enum nr_completion_type type;
    uint32_t bytes;
};

enum nr_error nr_device_open(struct nr_device *device, const struct nr_options *options, const char *address, uint32_t lanes,
                             char reason[NR_REASON_BYTES]);
void nr_device_close(struct nr_device *device);

/* New connections with a new first PSN (0: a random one), so that packets of older connections match none. */
enum nr_error nr_connection_create(struct nr_connection *connection, struct nr_device *device, uint32_t lanes, uint32_t window,
                                   uint32_t first_psn, char reason[NR_REASON_BYTES]);
enum nr_error nr_connection_establish(struct nr_connection *connection, struct nr_device *device,
                                      const struct na_neighbors *neighbors, char reason[NR_REASON_BYTES]);
void nr_connection_close(struct nr_connection *connection);

/* Buffers of the next message to send, and of the next one to receive. */
uint32_t *nr_send_buffer(const struct nr_connection *connection);
uint32_t *nr_receive_buffer(const struct nr_connection *connection);
/* Posts a receive for the sum, then sends the send buffer. */
enum nr_error nr_send(struct nr_connection *connection, uint32_t tree, uint32_t packets, char reason[NR_REASON_BYTES]);

/* At most `capacity` completions; -1: there are none, and a connection is lost, with `reason`. */
int nr_poll_completions(struct nr_device *device, struct nr_completion *done, int capacity, char reason[NR_REASON_BYTES]);
/* Before waiting on the channel's descriptor: it becomes readable with the next completion. */
enum nr_error nr_arm_completions(struct nr_device *device, char reason[NR_REASON_BYTES]);
void nr_consume_event(struct nr_device *device);

#endif
