/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The kind of port of DPDK: a driver of this process moves frames between the device and buffers of this process.
 *
 * Nothing announces frames. A timer wakes the thread to look: often while frames come, and a thousand times a second otherwise. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "checksum.h"
#include "dpdk_device.h"

enum {
    BUSY_NS = 50000, /* between looks while frames come or wait */
    IDLE_NS = 1000000,
    IDLE_LOOKS = 64, /* in a row without a frame, after which the port is idle */
    AHEAD = 2, /* frames that are fetched into the cache before their turn */
    CACHE_LINE = 64,
};

struct dpdk_port {
    struct ss_dpdk_device *device;
    uint16_t id, queue;
    uint32_t looks; /* without a frame, up to IDLE_LOOKS */
    uint64_t dropped; /* by the device until the last look */
    struct rte_mbuf *next; /* where the next frame is written; NULL: no buffer was free */
    struct rte_mbuf *waiting[SS_DPDK_QUEUE];
    uint32_t count, added; /* waiting, and those of them that the driver was never given */
    struct ss_departures departures; /* the charge is descriptors, and frames that wait */
};

static void look_every(const struct ss_interface *interface, long ns) {
    struct itimerspec when = {.it_value.tv_nsec = ns, .it_interval.tv_nsec = ns};
    timerfd_settime(interface->wait_fd, 0, &when, NULL);
}

static void stay_busy(const struct ss_interface *interface, struct dpdk_port *port) {
    if (port->looks == IDLE_LOOKS) look_every(interface, BUSY_NS);
    port->looks = 0;
}

/* The timer stops once it is due until it is read. */
static void count_look(const struct ss_interface *interface, struct dpdk_port *port) {
    uint64_t ignored;
    (void)!read(interface->wait_fd, &ignored, sizeof ignored);
    if (port->looks < IDLE_LOOKS && ++port->looks == IDLE_LOOKS) look_every(interface, IDLE_NS);
}

static uint64_t device_drops(const struct dpdk_port *port) {
    struct rte_eth_stats stats;
    return rte_eth_stats_get(port->id, &stats) == 0 ? stats.imissed + stats.rx_nombuf : 0;
}

static void close_port(struct ss_interface *interface) {
    struct dpdk_port *port = interface->own;
    rte_pktmbuf_free(port->next);
    rte_pktmbuf_free_bulk(port->waiting, port->count);
    interface->counters.tx_dropped += port->count;
    ss_dpdk_close(port->device);
    close(interface->wait_fd);
    if (interface->device_fd >= 0) close(interface->device_fd);
    free(port);
}

static int open_port(struct ss_interface *interface) {
    struct dpdk_port *port = calloc(1, sizeof *port);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    int error = !port ? -ENOMEM : timer < 0 ? -errno : ss_dpdk_open(interface, &port->device);
    if (error) {
        if (timer >= 0) close(timer);
        free(port);
        return error;
    }
    port->id = port->device->id;
    port->queue = (uint16_t)interface->thread;
    port->next = rte_pktmbuf_alloc(port->device->pool);
    port->dropped = device_drops(port);
    interface->own = port;
    interface->wait_fd = timer;
    look_every(interface, BUSY_NS);
    return 0;
}

/* ---- receiving ---- */

static pthread_key_t registered;

static void leave(void *ignored) {
    (void)ignored;
    rte_thread_unregister();
}

static void make_key(void) { (void)pthread_key_create(&registered, leave); }

/* Gives the thread a cache of buffers, until it ends. */
static void join_once(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static _Thread_local bool has_tried;
    if (has_tried) return;
    has_tried = true;
    pthread_once(&once, make_key);
    if (rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0) (void)pthread_setspecific(registered, &registered);
}

static void prefetch(const struct rte_mbuf *frame) {
    const uint8_t *data = rte_pktmbuf_mtod(frame, const uint8_t *);
    for (uint32_t at = 0; at < frame->data_len; at += CACHE_LINE) rte_prefetch0(data + at);
}

/* Returns whether the frame lies in one piece, with its VLAN tag. */
static bool make_whole(struct rte_mbuf **frame) {
    if ((*frame)->nb_segs > 1 && rte_pktmbuf_linearize(*frame)) return false;
    return !((*frame)->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) || rte_vlan_insert(frame) == 0;
}

static void deliver(struct ss_interface *interface, const struct dpdk_port *port, struct rte_mbuf **frame) {
    if (!make_whole(frame)) {
        interface->counters.rx_oversize++;
        return;
    }
    uint8_t *data = rte_pktmbuf_mtod(*frame, uint8_t *);
    if (port->device->is_virtual) ss_complete_partial(data, (*frame)->data_len);
    ss_interface_deliver(interface, data, (*frame)->data_len);
}

static uint32_t receive(struct ss_interface *interface, uint32_t budget) {
    struct dpdk_port *port = interface->own;
    struct rte_mbuf *frame[SS_DPDK_BURST];
    uint32_t taken = 0;
    uint16_t count;
    join_once();
    do {
        count = rte_eth_rx_burst(port->id, port->queue, frame, SS_DPDK_BURST);
        for (uint16_t i = 0; i < AHEAD && i < count; i++) prefetch(frame[i]);
        for (uint16_t i = 0; i < count; i++) {
            if (i + AHEAD < count) prefetch(frame[i + AHEAD]);
            deliver(interface, port, &frame[i]);
        }
        rte_pktmbuf_free_bulk(frame, count);
        taken += count;
    } while (count == SS_DPDK_BURST && taken < budget);
    if (taken)
        stay_busy(interface, port);
    else
        count_look(interface, port);
    return taken;
}

/* ---- sending ---- */

static uint8_t *place(struct ss_interface *interface, uint32_t length) {
    const struct dpdk_port *port = interface->own;
    bool fits = port->next && port->count < SS_DPDK_QUEUE && length <= port->device->room;
    return fits ? rte_pktmbuf_mtod(port->next, uint8_t *) : NULL;
}

static bool add(struct ss_interface *interface, const uint8_t *data, uint32_t length) {
    struct dpdk_port *port = interface->own;
    if (!port->next) port->next = rte_pktmbuf_alloc(port->device->pool);
    uint8_t *to = place(interface, length);
    if (!to) return false;
    if (data != to) memcpy(to, data, length);
    port->next->data_len = (uint16_t)length;
    port->next->pkt_len = length;
    port->waiting[port->count++] = port->next;
    port->added++;
    port->next = rte_pktmbuf_alloc(port->device->pool);
    return true;
}

static uint64_t waiting_bytes(const struct dpdk_port *port) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < port->count; i++) bytes += port->waiting[i]->pkt_len;
    return bytes;
}

static void flush(struct ss_interface *interface, uint64_t now_ns) {
    struct dpdk_port *port = interface->own;
    if (!port->count) return;
    uint64_t bytes = waiting_bytes(port);
    uint32_t sent = 0, taken;
    do {
        taken = rte_eth_tx_burst(port->id, port->queue, port->waiting + sent, (uint16_t)(port->count - sent));
        sent += taken;
    } while (taken && sent < port->count);
    port->count -= sent;
    memmove(port->waiting, port->waiting + sent, port->count * sizeof *port->waiting);
    interface->counters.tx_packets += sent;
    interface->counters.tx_bytes += bytes - waiting_bytes(port);
    ss_departures_add(&port->departures, port->added, port->added, now_ns);
    port->added = 0;
    if (port->count) stay_busy(interface, port);
}

static bool is_in_use(const struct dpdk_port *port, uint32_t offset) {
    return rte_eth_tx_descriptor_status(port->id, port->queue, (uint16_t)offset) == RTE_ETH_TX_DESC_FULL;
}

/* Descriptors that are sent lie before those that are not. Returns 0 where the driver does not report them. */
static uint32_t used_descriptors(const struct dpdk_port *port) {
    uint32_t count = port->device->send_descriptors, low = 0, high = count - 1;
    if (!is_in_use(port, high)) return 0;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (is_in_use(port, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return count - low;
}

static struct ss_backlog backlog(struct ss_interface *interface, uint64_t now_ns) {
    struct dpdk_port *port = interface->own;
    if (!port->departures.count) return (struct ss_backlog){0};
    return ss_departures_backlog(&port->departures, port->count + used_descriptors(port), now_ns);
}

/* ---- the device ---- */

/* The device counts for all of its queues. */
static void read_drops(struct ss_interface *interface) {
    struct dpdk_port *port = interface->own;
    uint64_t dropped = interface->thread ? 0 : device_drops(port);
    if (dropped <= port->dropped) return;
    interface->counters.rx_dropped += dropped - port->dropped;
    port->dropped = dropped;
}

static int link_state(const struct ss_interface *interface) {
    const struct dpdk_port *port = interface->own;
    struct rte_eth_link link = {0};
    if (rte_eth_dev_is_removed(port->id)) return -ENODEV;
    return rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status;
}

const struct ss_port_kind ss_dpdk_port = SS_PORT_KIND("dpdk", .backlog = backlog, .read_drops = read_drops, .link = link_state);
