/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_verbs.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

enum { HOSTS = 8, RAW_MESSAGES = 2, QUEUED = 64, COMPLETED = 1024 };

struct message {
    uint64_t id;
    uint8_t *bytes;
    uint32_t size;
};

struct fake_qp {
    struct ibv_qp qp;
    struct fake_qp *next;
    int host;
    int hosts; /* that its switch adds up */
    uint32_t destination;
    int sends; /* ready to */
    int broken;
    struct message sent[QUEUED], receives[QUEUED];
    int sent_count, receive_count;
};

struct fake_cq {
    struct ibv_cq cq;
    struct ibv_wc done[COMPLETED];
    int count, armed;
};

static struct {
    pthread_mutex_t lock;
    int hosts, opened, at, messages, things, floats;
    enum fault fault;
    uint32_t next_qpn;
    char addresses[HOSTS][16];
    struct fake_qp *pairs;
    struct message lost; /* of the pair with number `loser` */
    uint32_t loser;
    int held_host, held_at; /* 0: no host is held */
} net = {.lock = PTHREAD_MUTEX_INITIALIZER};

void fake_start(int hosts, enum fault fault, int at) {
    pthread_mutex_lock(&net.lock);
    net.hosts = hosts, net.fault = fault, net.at = at, net.messages = 0, net.next_qpn = 17;
    pthread_mutex_unlock(&net.lock);
}

void fake_hosts(int hosts) {
    pthread_mutex_lock(&net.lock);
    net.hosts = hosts;
    pthread_mutex_unlock(&net.lock);
}

void fake_address(int host, const char *address) { snprintf(net.addresses[host], sizeof net.addresses[host], "%s", address); }

void fake_floats(void) { net.floats = 1; }

int fake_left_over(void) { return net.things; }

static void made(int change) { net.things += change; }

/* ---- completions ---- */

static void complete(struct ibv_cq *queue, uint64_t id, enum ibv_wc_opcode opcode, uint32_t bytes, int good) {
    struct fake_cq *cq = (struct fake_cq *)queue;
    if (cq->count == COMPLETED) abort();
    cq->done[cq->count++] = (struct ibv_wc){
        .wr_id = id, .opcode = opcode, .byte_len = bytes, .status = good ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR};
    uint64_t one = 1;
    if (cq->armed && write(queue->channel->fd, &one, sizeof one) < 0) abort();
    cq->armed = 0;
}

static int is_held(const struct ibv_cq *queue) {
    for (struct fake_qp *p = net.pairs; p != NULL && net.held_at > 0 && net.messages > net.held_at; p = p->next)
        if (p->host == net.held_host && (p->qp.send_cq == queue || p->qp.recv_cq == queue)) return 1;
    return 0;
}

static int poll_cq(struct ibv_cq *queue, int room, struct ibv_wc *wc) {
    struct fake_cq *cq = (struct fake_cq *)queue;
    pthread_mutex_lock(&net.lock);
    int count = is_held(queue) ? 0 : cq->count < room ? cq->count : room;
    memcpy(wc, cq->done, (size_t)count * sizeof *wc);
    cq->count -= count;
    memmove(cq->done, cq->done + count, (size_t)cq->count * sizeof *wc);
    pthread_mutex_unlock(&net.lock);
    return count;
}

static int req_notify_cq(struct ibv_cq *queue, int solicited) {
    (void)solicited;
    pthread_mutex_lock(&net.lock);
    ((struct fake_cq *)queue)->armed = 1;
    pthread_mutex_unlock(&net.lock);
    return 0;
}

/* ---- the switch ---- */

static struct fake_qp *pair_of(uint32_t qpn) {
    for (struct fake_qp *p = net.pairs; p != NULL; p = p->next)
        if (p->qp.qp_num == qpn) return p;
    return NULL;
}

static void pop(struct message *queue, int *count) { memmove(queue, queue + 1, (size_t)--*count * sizeof *queue); }

static void deliver(struct fake_qp *from, const uint8_t *bytes, uint32_t size) {
    struct fake_qp *to = pair_of(from->destination);
    if (to == NULL || to->receive_count == 0) abort(); /* a receive is posted before each send */
    if (size > to->receives[0].size) abort();
    memcpy(to->receives[0].bytes, bytes, size);
    complete(to->qp.recv_cq, to->receives[0].id, IBV_WC_RECV, size, 1);
    pop(to->receives, &to->receive_count);
}

/* A sender of what is not acknowledged is notified; `all`: every sender is. */
static void break_all(int all) {
    for (struct fake_qp *p = net.pairs; p != NULL; p = p->next) {
        if (p->sends && !p->broken && (all || p->sent_count > 0)) complete(p->qp.send_cq, p->sent[0].id, IBV_WC_SEND, 0, 0);
        p->broken = 1;
    }
}

static uint32_t float_sum(struct fake_qp *const *of, int hosts, uint32_t i) {
    float sum = -0.0f, lane;
    for (int h = 0; h < hosts; h++)
        if (4 * i < of[h]->sent[0].size) memcpy(&lane, of[h]->sent[0].bytes + 4 * i, 4), sum += lane;
    uint32_t bits;
    memcpy(&bits, &sum, 4);
    return bits;
}

static int64_t clamped(int64_t x) { return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x; }

/* As two leaves and a root add up: no flag tells a host that a leaf's sum was saturated. */
static uint32_t integer_sum(struct fake_qp *const *of, int hosts, uint32_t i) {
    int64_t leaves[2] = {0};
    for (int h = 0; h < hosts; h++) {
        int64_t *leaf = &leaves[2 * h >= hosts];
        if (4 * i < of[h]->sent[0].size) *leaf = clamped(*leaf + (int32_t)ntohl(((uint32_t *)(void *)of[h]->sent[0].bytes)[i]));
    }
    return htonl((uint32_t)clamped(leaves[0] + leaves[1]));
}

/* Whatever can be added up of a tree: all hosts have a message in their oldest place. */
static void add_up(uint64_t tree) {
    for (;;) {
        struct fake_qp *of[HOSTS] = {0};
        int ready = 0, hosts = net.hosts;
        for (struct fake_qp *p = net.pairs; p != NULL; p = p->next)
            if (p->sends && !p->broken && p->sent_count > 0 && p->sent[0].id == tree && of[p->host] == NULL)
                of[p->host] = p, ready++, hosts = p->hosts;
        if (ready < hosts) return;
        int number = net.messages++, faulty = net.fault != FAULT_NONE && number >= net.at;
        if (net.fault == FAULT_RAW && number >= net.at + RAW_MESSAGES) net.fault = FAULT_NONE;
        if (faulty && net.fault == FAULT_BREAK) {
            net.fault = FAULT_NONE;
            break_all(0);
            return;
        }
        uint32_t size = of[0]->sent[0].size;
        uint32_t *sum = calloc(size, 1);
        for (uint32_t i = 0; i < size / 4; i++) sum[i] = net.floats ? float_sum(of, hosts, i) : integer_sum(of, hosts, i);
        int raw = faulty && net.fault == FAULT_RAW, unheard = faulty && net.fault == FAULT_UNHEARD;
        int unsent = faulty && net.fault == FAULT_UNSENT;
        int ends = faulty && net.fault == FAULT_ENDS, some = ends || (faulty && net.fault == FAULT_SOME);
        for (int h = 0; h < hosts; h++) {
            struct fake_qp *to = pair_of(of[h]->destination);
            int arrives = !some || to->host == 0 || (ends && to->host == hosts - 1);
            if (!arrives && h != 0 && !(ends && h == hosts - 1)) continue;
            if (unsent && h == 0) {
                net.loser = of[h]->qp.qp_num;
                net.lost = (struct message){tree, (uint8_t *)sum, size};
                continue;
            }
            if (arrives) deliver(of[h], raw ? of[h]->sent[0].bytes : (uint8_t *)sum, size);
            if (!unheard || h != 0) complete(of[h]->qp.send_cq, of[h]->sent[0].id, IBV_WC_SEND, 0, 1);
        }
        for (int h = 0; h < hosts; h++) pop(of[h]->sent, &of[h]->sent_count);
        if (!unsent) free(sum);
        if (unheard || unsent) net.fault = FAULT_NONE;
        if (some || (faulty && net.fault == FAULT_BEHIND)) {
            net.fault = FAULT_NONE;
            break_all(!some);
        }
    }
}

void fake_send_again(void) {
    pthread_mutex_lock(&net.lock);
    struct fake_qp *from = pair_of(net.loser);
    if (from != NULL && net.lost.bytes != NULL) {
        deliver(from, net.lost.bytes, net.lost.size);
        complete(from->qp.send_cq, net.lost.id, IBV_WC_SEND, 0, 1);
    }
    free(net.lost.bytes);
    net.lost.bytes = NULL;
    pthread_mutex_unlock(&net.lock);
}

void fake_hold(int host, int at) { net.held_host = host, net.held_at = at; }

void fake_release(void) {
    uint64_t one = 1;
    pthread_mutex_lock(&net.lock);
    net.held_at = 0;
    for (struct fake_qp *p = net.pairs; p != NULL; p = p->next)
        if (write(p->qp.send_cq->channel->fd, &one, sizeof one) < 0) abort();
    pthread_mutex_unlock(&net.lock);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    struct fake_qp *p = (struct fake_qp *)qp;
    pthread_mutex_lock(&net.lock);
    int failed = !p->sends || p->sent_count == QUEUED;
    if (failed) *bad = wr;
    if (!failed && p->broken) complete(qp->send_cq, wr->wr_id, IBV_WC_SEND, 0, 0);
    if (!failed && !p->broken) {
        p->sent[p->sent_count++] = (struct message){wr->wr_id, (uint8_t *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length};
        add_up(wr->wr_id);
    }
    pthread_mutex_unlock(&net.lock);
    return failed;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    struct fake_qp *p = (struct fake_qp *)qp;
    pthread_mutex_lock(&net.lock);
    int failed = p->receive_count == QUEUED;
    if (failed) *bad = wr;
    if (!failed)
        p->receives[p->receive_count++] =
            (struct message){wr->wr_id, (uint8_t *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length};
    pthread_mutex_unlock(&net.lock);
    return failed;
}

/* ---- making and taking down ---- */

static struct ibv_device device = {.name = "fake0"};

struct ibv_device **ibv_get_device_list(int *count) {
    struct ibv_device **list = calloc(2, sizeof *list);
    list[0] = &device;
    *count = 1;
    return list;
}

void ibv_free_device_list(struct ibv_device **list) { free(list); }
const char *ibv_get_device_name(struct ibv_device *d) { return d->name; }

struct ibv_context *ibv_open_device(struct ibv_device *d) {
    struct ibv_context *context = calloc(1, sizeof *context);
    context->device = d;
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = req_notify_cq;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    pthread_mutex_lock(&net.lock);
    made(1);
    pthread_mutex_unlock(&net.lock);
    return context;
}

int ibv_close_device(struct ibv_context *context) {
    pthread_mutex_lock(&net.lock);
    made(-1);
    pthread_mutex_unlock(&net.lock);
    free(context);
    return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attributes) {
    (void)context, (void)port;
    struct ibv_port_attr *wide = (struct ibv_port_attr *)attributes;
    wide->active_mtu = IBV_MTU_1024;
    wide->gid_tbl_len = HOSTS;
    return 0;
}

/* Each host finds its address at index i: that is how it becomes host i. */
int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry, uint32_t flags,
                      size_t size) {
    (void)context, (void)port, (void)flags, (void)size;
    memset(entry, 0, sizeof *entry);
    entry->gid_type = IBV_GID_TYPE_ROCE_V2;
    entry->gid.raw[10] = entry->gid.raw[11] = 0xff;
    entry->gid.raw[12] = 10;
    entry->gid.raw[15] = (uint8_t)(index + 1);
    if (net.addresses[index][0]) inet_pton(AF_INET, net.addresses[index], entry->gid.raw + 12);
    return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    pd->context = context;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd) {
    free(pd);
    return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t size, int access) {
    (void)access;
    struct ibv_mr *mr = calloc(1, sizeof *mr);
    *mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = at, .length = size};
    return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t size, uint64_t iova, unsigned int access) {
    (void)iova;
    return ibv_reg_mr(pd, at, size, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr) {
    free(mr);
    return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
    struct ibv_comp_channel *channel = calloc(1, sizeof *channel);
    channel->context = context;
    channel->fd = eventfd(0, EFD_CLOEXEC);
    return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
    close(channel->fd);
    free(channel);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int size, void *own, struct ibv_comp_channel *channel, int vector) {
    (void)size, (void)own, (void)vector;
    struct fake_cq *cq = calloc(1, sizeof *cq);
    cq->cq.context = context;
    cq->cq.channel = channel;
    return &cq->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq) {
    free(cq);
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context) {
    uint64_t times;
    *cq = NULL, *context = NULL;
    return read(channel->fd, &times, sizeof times) < 0 ? -1 : 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count) { (void)cq, (void)count; }

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *wanted) {
    struct fake_qp *p = calloc(1, sizeof *p);
    p->qp.context = pd->context;
    p->qp.pd = pd;
    p->qp.send_cq = wanted->send_cq;
    p->qp.recv_cq = wanted->recv_cq;
    pthread_mutex_lock(&net.lock);
    p->qp.qp_num = net.next_qpn++;
    p->hosts = net.hosts;
    p->next = net.pairs;
    net.pairs = p;
    made(1);
    pthread_mutex_unlock(&net.lock);
    return &p->qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int what) {
    struct fake_qp *p = (struct fake_qp *)qp;
    pthread_mutex_lock(&net.lock);
    if (what & IBV_QP_DEST_QPN) p->destination = attributes->dest_qp_num;
    if (what & IBV_QP_AV) p->host = attributes->ah_attr.grh.sgid_index;
    if (attributes->qp_state == IBV_QPS_RTS) p->sends = 1;
    pthread_mutex_unlock(&net.lock);
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp) {
    pthread_mutex_lock(&net.lock);
    for (struct fake_qp **at = &net.pairs; *at != NULL; at = &(*at)->next)
        if (&(*at)->qp == qp) {
            *at = (*at)->next;
            break;
        }
    made(-1);
    pthread_mutex_unlock(&net.lock);
    free(qp);
    return 0;
}

const char *ibv_wc_status_str(enum ibv_wc_status status) { return status == IBV_WC_SUCCESS ? "success" : "failed"; }
