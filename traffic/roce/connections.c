/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "connections.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { COMPLETIONS = 2 * NR_TREES * (NR_RECEIVES_PER_SEND + 1) * NR_MAX_CREDIT, DEFAULT_TIMEOUT = 14, RETRY_FOREVER = 7 };

__attribute__((format(printf, 2, 3))) static enum nr_error device_error(char reason[NR_REASON_BYTES], const char *format, ...) {
    va_list words;
    va_start(words, format);
    vsnprintf(reason, NR_REASON_BYTES, format, words);
    va_end(words);
    return NR_DEVICE;
}

static void gid_of(union ibv_gid *gid, const char *address) {
    memset(gid, 0, sizeof *gid);
    gid->raw[10] = gid->raw[11] = 0xff;
    if (inet_pton(AF_INET, address, gid->raw + 12) != 1) memset(gid, 0, sizeof *gid);
}

/* ---- device ---- */

/* The index of RoCE v2's GID that stands for the address; -1 if the device has none. */
static int gid_index_of(struct ibv_context *context, uint8_t port, const char *address) {
    union ibv_gid wanted;
    gid_of(&wanted, address);
    struct ibv_gid_entry entry;
    struct ibv_port_attr attributes;
    if (ibv_query_port(context, port, &attributes) != 0) return -1;
    for (int i = 0; i < attributes.gid_tbl_len; i++)
        if (ibv_query_gid_ex(context, port, (uint32_t)i, &entry, 0) == 0 && entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
            memcmp(&entry.gid, &wanted, sizeof wanted) == 0)
            return i;
    return -1;
}

static struct ibv_context *find_device(const char *name, const char *address, uint8_t port, int *gid_index) {
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    struct ibv_context *found = NULL;
    for (int i = 0; i < count && found == NULL; i++) {
        if (name != NULL && strcmp(name, ibv_get_device_name(devices[i])) != 0) continue;
        struct ibv_context *context = ibv_open_device(devices[i]);
        if (context == NULL) continue;
        *gid_index = gid_index_of(context, port, address);
        if (*gid_index >= 0)
            found = context;
        else
            ibv_close_device(context);
    }
    if (devices != NULL) ibv_free_device_list(devices);
    return found;
}

enum nr_error nr_device_open(struct nr_device *d, const struct nr_options *options, const char *address, uint32_t lanes,
                             char reason[NR_REASON_BYTES]) {
    memset(d, 0, sizeof *d);
    d->port = 1;
    d->mtu = lanes == 256 ? IBV_MTU_1024 : IBV_MTU_256;
    d->timeout = options->timeout ? options->timeout : DEFAULT_TIMEOUT;
    d->retries = options->retries ? options->retries : RETRY_FOREVER;
    d->context = find_device(options->device, address, d->port, &d->gid_index);
    if (d->context == NULL)
        return device_error(reason, "no RDMA device%s%s has the address %s (RoCE v2)", options->device ? " " : "",
                            options->device ? options->device : "", address);
    struct ibv_port_attr attributes;
    if (ibv_query_port(d->context, d->port, &attributes) != 0 || attributes.active_mtu < d->mtu)
        return device_error(reason, "the RDMA device's path MTU is below the job's %u bytes: raise the interface's MTU",
                            4 * lanes);
    d->domain = ibv_alloc_pd(d->context);
    d->channel = ibv_create_comp_channel(d->context);
    if (d->domain != NULL && d->channel != NULL) d->completions = ibv_create_cq(d->context, COMPLETIONS, NULL, d->channel, 0);
    if (d->completions == NULL) return device_error(reason, "the RDMA device gives no completion queue: %s", strerror(errno));
    int flags = fcntl(d->channel->fd, F_GETFL);
    if (fcntl(d->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0) return device_error(reason, "fcntl: %s", strerror(errno));
    return NR_OK;
}

void nr_device_close(struct nr_device *d) {
    if (d->completions != NULL) ibv_destroy_cq(d->completions);
    if (d->channel != NULL) ibv_destroy_comp_channel(d->channel);
    if (d->domain != NULL) ibv_dealloc_pd(d->domain);
    if (d->context != NULL) ibv_close_device(d->context);
    memset(d, 0, sizeof *d);
}

/* ---- connections ---- */

static struct ibv_qp *create_qp(struct nr_device *d, uint32_t sends, uint32_t receives) {
    struct ibv_qp_init_attr wanted = {
        .send_cq = d->completions,
        .recv_cq = d->completions,
        .cap = {.max_send_wr = sends, .max_recv_wr = receives, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *pair = ibv_create_qp(d->domain, &wanted);
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = d->port, .qp_access_flags = IBV_ACCESS_LOCAL_WRITE};
    int what = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    if (pair != NULL && ibv_modify_qp(pair, &init, what) != 0) {
        ibv_destroy_qp(pair);
        pair = NULL;
    }
    return pair;
}

enum nr_error nr_connection_create(struct nr_connection *connection, struct nr_device *d, uint32_t lanes, uint32_t window,
                                   uint32_t first_psn, char reason[NR_REASON_BYTES]) {
    memset(connection, 0, sizeof *connection);
    uint32_t whole = window / NR_PACKETS;
    connection->credit = whole < 2 ? 2 : whole > NR_MAX_CREDIT ? NR_MAX_CREDIT : whole;
    connection->packets = window / connection->credit < NR_PACKETS ? window / connection->credit : NR_PACKETS;
    connection->packet_bytes = 4 * lanes;
    size_t bytes = (size_t)connection->credit * (1 + NR_RECEIVES_PER_SEND) * connection->packets * connection->packet_bytes;
    connection->first_psn = first_psn;
    if (first_psn == 0 && getrandom(&connection->first_psn, sizeof connection->first_psn, 0) != sizeof connection->first_psn)
        return device_error(reason, "no random numbers: %s", strerror(errno));
    connection->first_psn &= 0xffffff;
    if (posix_memalign((void **)&connection->memory, 4096, bytes) != 0) return NR_MEMORY;
    connection->registered = ibv_reg_mr(d->domain, connection->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (connection->registered == NULL)
        return device_error(reason, "%zu bytes cannot be registered with the RDMA device: %s (ulimit -l?)", bytes,
                            strerror(errno));
    connection->send_qp = create_qp(d, connection->credit, 1);
    connection->recv_qp = create_qp(d, 1, NR_RECEIVES_PER_SEND * connection->credit);
    if (connection->send_qp == NULL || connection->recv_qp == NULL)
        return device_error(reason, "no queue pair: %s", strerror(errno));
    return NR_OK;
}

static int connect_qp(struct nr_device *d, struct ibv_qp *pair, const char *address, uint32_t qpn, uint32_t own_psn,
                      uint32_t their_psn) {
    struct ibv_qp_attr ready = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = d->mtu,
        .dest_qp_num = qpn,
        .rq_psn = their_psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = d->port, .grh = {.sgid_index = (uint8_t)d->gid_index, .hop_limit = 64}},
    };
    gid_of(&ready.ah_attr.grh.dgid, address);
    int what = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
               IBV_QP_MIN_RNR_TIMER;
    int failed = ibv_modify_qp(pair, &ready, what);
    if (failed != 0) return failed;
    struct ibv_qp_attr sends = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = own_psn,
        .timeout = (uint8_t)d->timeout,
        .retry_cnt = (uint8_t)d->retries,
        .rnr_retry = RETRY_FOREVER,
        .max_rd_atomic = 1,
    };
    what = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    return ibv_modify_qp(pair, &sends, what);
}

enum nr_error nr_connection_establish(struct nr_connection *connection, struct nr_device *d, const struct na_neighbors *n,
                                      char reason[NR_REASON_BYTES]) {
    int failed =
        connect_qp(d, connection->recv_qp, n->predecessor, (uint32_t)n->predecessor_qpn, 0, (uint32_t)n->predecessor_psn);
    if (failed == 0)
        failed = connect_qp(d, connection->send_qp, n->successor, (uint32_t)n->successor_qpn, connection->first_psn, 0);
    return failed == 0 ? NR_OK
                       : device_error(reason, "no connection to %s and %s: %s", n->successor, n->predecessor, strerror(failed));
}

void nr_connection_close(struct nr_connection *connection) {
    if (connection->send_qp != NULL) ibv_destroy_qp(connection->send_qp);
    if (connection->recv_qp != NULL) ibv_destroy_qp(connection->recv_qp);
    if (connection->registered != NULL) ibv_dereg_mr(connection->registered);
    free(connection->memory);
    memset(connection, 0, sizeof *connection);
}

/* ---- messages ---- */

static uint8_t *buffer(const struct nr_connection *connection, uint64_t number) {
    return connection->memory + number * connection->packets * connection->packet_bytes;
}

static uint8_t *receive_buffer(const struct nr_connection *connection, uint64_t message) {
    return buffer(connection, connection->credit + message % (NR_RECEIVES_PER_SEND * (uint64_t)connection->credit));
}

uint32_t *nr_send_buffer(const struct nr_connection *connection) {
    return (uint32_t *)(void *)buffer(connection, connection->sent % connection->credit);
}

uint32_t *nr_receive_buffer(const struct nr_connection *connection) {
    return (uint32_t *)(void *)receive_buffer(connection, connection->received);
}

enum nr_error nr_send(struct nr_connection *connection, uint32_t tree, uint32_t packets, char reason[NR_REASON_BYTES]) {
    struct ibv_sge capacity = {(uintptr_t)receive_buffer(connection, connection->sent),
                               connection->packets * connection->packet_bytes, connection->registered->lkey};
    struct ibv_recv_wr receive = {.wr_id = tree, .sg_list = &capacity, .num_sge = 1}, *bad_receive;
    int failed = ibv_post_recv(connection->recv_qp, &receive, &bad_receive);
    if (failed != 0) return device_error(reason, "a receive cannot be posted: %s", strerror(failed));
    struct ibv_sge piece = {(uintptr_t)nr_send_buffer(connection), packets * connection->packet_bytes,
                            connection->registered->lkey};
    struct ibv_send_wr send = {
        .wr_id = tree, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad_send;
    failed = ibv_post_send(connection->send_qp, &send, &bad_send);
    if (failed != 0) return device_error(reason, "a send cannot be posted: %s", strerror(failed));
    connection->sent++;
    return NR_OK;
}

int nr_poll_completions(struct nr_device *d, struct nr_completion *done, int capacity, char reason[NR_REASON_BYTES]) {
    struct ibv_wc found[16];
    int count = ibv_poll_cq(d->completions, capacity < 16 ? capacity : 16, found), good = 0;
    if (count < 0) {
        device_error(reason, "the completion queue cannot be read");
        return -1;
    }
    for (int i = 0; i < count; i++) {
        if (found[i].status != IBV_WC_SUCCESS) {
            d->broken = found[i].status;
            continue;
        }
        done[good].tree = (uint32_t)found[i].wr_id;
        done[good].type = found[i].opcode & IBV_WC_RECV ? NR_RECEIVED : NR_SENT;
        done[good++].bytes = found[i].byte_len;
    }
    if (good > 0 || d->broken == IBV_WC_SUCCESS) return good;
    device_error(reason, "a connection broke: %s", ibv_wc_status_str(d->broken));
    return -1;
}

enum nr_error nr_arm_completions(struct nr_device *d, char reason[NR_REASON_BYTES]) {
    int failed = ibv_req_notify_cq(d->completions, 0);
    return failed == 0 ? NR_OK : device_error(reason, "the completion queue cannot be armed: %s", strerror(failed));
}

void nr_consume_event(struct nr_device *d) {
    struct ibv_cq *queue;
    void *context;
    if (ibv_get_cq_event(d->channel, &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
}
