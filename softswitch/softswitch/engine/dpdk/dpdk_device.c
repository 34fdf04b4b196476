/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "dpdk_device.h"

#include <errno.h>
#include <pthread.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "segments.h"

enum {
    RECEIVES = 1024, /* descriptors of a queue */
    SENDS = 512,
    CACHE = 128, /* buffers that a thread keeps for itself */
    IN_HAND = 4 * SS_DPDK_BURST, /* buffers of a thread's current burst, its next frame, and those of a driver */
    OVERHEAD = 14 + 2 * SS_VLAN_TAG, /* bytes of a frame beyond the MTU */
    ROOM_MIN = 2048,
    DEFAULT_MTU = 1500,
    MTU_MAX = 16000, /* a buffer has less than 64 KB */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, and all members but those of an open device */
static struct ss_dpdk_device *devices;

int ss_dpdk_start(int count, char **arguments, char *message, uint32_t size) {
    FILE *text = fmemopen(message, size, "w");
    if (!text) return -errno;
    rte_openlog_stream(text);
    int error = rte_eal_init(count, arguments) < 0 ? -rte_errno : 0;
    rte_openlog_stream(stderr);
    fclose(text);
    return error;
}

static struct ss_dpdk_device *find(const char *name) {
    struct ss_dpdk_device *device = devices;
    while (device && strcmp(device->name, name) != 0) device = device->next;
    if (device || !(device = calloc(1, sizeof *device))) return device;
    memccpy(device->name, name, 0, IF_NAMESIZE - 1);
    device->is_virtual = strncmp(name, "net_", 4) == 0;
    device->next = devices;
    devices = device;
    return device;
}

static bool is_of_driver(const struct ss_dpdk_device *device, const char *driver) {
    return strncmp(device->name, driver, strlen(driver)) == 0;
}

/* A port of net_af_packet is a kernel's interface, which may be absent. */
static bool lacks_interface(const struct ss_dpdk_device *device, const char *arguments) {
    const char *at = is_of_driver(device, "net_af_packet") ? strstr(arguments, ",iface=") : NULL;
    if (!at) return false;
    char name[IF_NAMESIZE] = "";
    sscanf(at, ",iface=%15[^,]", name);
    return if_nametoindex(name) == 0;
}

static int probe(struct ss_dpdk_device *device, const char *arguments) {
    if (lacks_interface(device, arguments)) return -ENODEV;
    if (rte_eth_dev_get_port_by_name(device->name, &device->id) == 0) return 0;
    int error = rte_dev_probe(arguments);
    if (error) return error == -ENODEV ? error : -EIO;
    return rte_eth_dev_get_port_by_name(device->name, &device->id) == 0 ? 0 : -EIO;
}

/* A pool lives on while other ports have its frames. */
static void release_pool(struct ss_dpdk_device *device) {
    if (!device->pool || !rte_mempool_full(device->pool)) return;
    rte_mempool_free(device->pool);
    device->pool = NULL;
}

static void remove_device(struct ss_dpdk_device *device, const struct rte_eth_dev_info *info) {
    bool is_gone = rte_eth_dev_is_removed(device->id) == 1;
    if (!device->is_virtual && !is_gone) return;
    (void)rte_dev_remove(info->device);
    release_pool(device);
}

/* Keeps a pool of earlier frames if they are not shorter. */
static int make_pool(struct ss_dpdk_device *device, uint32_t longest, uint32_t buffers) {
    static uint32_t number;
    if (device->pool && device->room >= longest && device->pool->size >= buffers) return 0;
    release_pool(device);
    device->pool = NULL;
    for (device->room = ROOM_MIN; device->room < longest;) device->room *= 2;
    char name[RTE_MEMPOOL_NAMESIZE];
    snprintf(name, sizeof name, "frames%u", number++);
    uint16_t bytes = (uint16_t)(device->room + RTE_PKTMBUF_HEADROOM);
    device->pool = rte_pktmbuf_pool_create(name, buffers, CACHE, 0, bytes, SOCKET_ID_ANY);
    return device->pool ? 0 : -ENOMEM;
}

static uint32_t largest_mtu(const struct rte_eth_dev_info *info) {
    uint32_t of_frame =
        info->max_rx_pktlen < UINT16_MAX ? info->max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN : UINT16_MAX;
    return info->max_mtu && info->max_mtu < of_frame ? info->max_mtu : of_frame;
}

static int configure(struct ss_dpdk_device *device, const struct rte_eth_dev_info *info, uint32_t mtu) {
    uint16_t queues = (uint16_t)device->threads, receives = RECEIVES, sends = SENDS;
    struct rte_eth_conf conf = {.rxmode.mtu = mtu};
    if (mtu > MTU_MAX || mtu > largest_mtu(info)) return -EMSGSIZE;
    if (queues > info->max_rx_queues || queues > info->max_tx_queues) return -EUSERS;
    if (queues > 1) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP) & info->flow_type_rss_offloads;
        if (!conf.rx_adv_conf.rss_conf.rss_hf) conf.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
    }
    if (rte_eth_dev_configure(device->id, queues, queues, &conf)) return -EIO;
    if (rte_eth_dev_adjust_nb_rx_tx_desc(device->id, &receives, &sends)) return -EIO;
    device->send_descriptors = sends;
    uint32_t buffers = queues * ((uint32_t)receives + sends + SS_DPDK_QUEUE + IN_HAND + 2 * CACHE);
    int error = make_pool(device, mtu + OVERHEAD, buffers);
    for (uint16_t queue = 0; queue < queues && !error; queue++)
        if (rte_eth_rx_queue_setup(device->id, queue, receives, SOCKET_ID_ANY, NULL, device->pool) ||
            rte_eth_tx_queue_setup(device->id, queue, sends, SOCKET_ID_ANY, NULL))
            error = -EIO;
    return error;
}

/* The kernel's interface of a card is one that the driver shares with it. That of a tap is the other end of the link. */
static int use_netdev(struct ss_interface *interface, const struct ss_dpdk_device *device,
                      const struct rte_eth_dev_info *info) {
    if (!info->if_index || is_of_driver(device, "net_tap")) {
        ss_interface_set_mtu(interface, interface->wanted_mtu ? interface->wanted_mtu : DEFAULT_MTU);
        return 0;
    }
    return if_indextoname(info->if_index, interface->netdev) ? ss_interface_open_device(interface) : -ENODEV;
}

static int start(struct ss_interface *interface, struct ss_dpdk_device *device) {
    struct rte_eth_dev_info info;
    device->threads = interface->threads;
    int error = probe(device, interface->device);
    if (error) return error;
    if (rte_eth_dev_info_get(device->id, &info)) return -EIO;
    if (!(error = use_netdev(interface, device, &info))) error = configure(device, &info, interface->mtu);
    if (!error && rte_eth_dev_start(device->id)) error = -EIO;
    if (error) {
        remove_device(device, &info);
        return error;
    }
    if (!device->is_virtual) (void)rte_eth_promiscuous_enable(device->id); /* virtual ones get all frames */
    return 0;
}

static int join(struct ss_interface *interface, struct ss_dpdk_device *device) {
    struct rte_eth_dev_info info;
    return rte_eth_dev_info_get(device->id, &info) ? -EIO : use_netdev(interface, device, &info);
}

int ss_dpdk_open(struct ss_interface *interface, struct ss_dpdk_device **out) {
    pthread_mutex_lock(&lock);
    struct ss_dpdk_device *device = find(interface->ifname);
    int error = -ENOMEM;
    if (device && !interface->thread)
        error = device->users ? -EBUSY : start(interface, device);
    else if (device)
        error = device->users ? join(interface, device) : -ENODEV;
    if (!error) device->users++;
    pthread_mutex_unlock(&lock);
    if (error && interface->device_fd >= 0) close(interface->device_fd);
    if (error) interface->device_fd = -1;
    *out = device;
    return error;
}

/* Returns the buffers that a ring of software holds to their pools. */
static void drain(const struct ss_dpdk_device *device) {
    struct rte_mbuf *frame[SS_DPDK_BURST];
    for (uint16_t queue = 0; queue < device->threads; queue++) {
        uint32_t rounds = 0;
        uint16_t count;
        while (rounds++ < RECEIVES / SS_DPDK_BURST && (count = rte_eth_rx_burst(device->id, queue, frame, SS_DPDK_BURST)))
            rte_pktmbuf_free_bulk(frame, count);
    }
}

void ss_dpdk_close(struct ss_dpdk_device *device) {
    pthread_mutex_lock(&lock);
    if (!--device->users) {
        struct rte_eth_dev_info info;
        bool is_there = rte_eth_dev_info_get(device->id, &info) == 0;
        drain(device);
        (void)rte_eth_dev_stop(device->id);
        if (is_there) remove_device(device, &info);
    }
    pthread_mutex_unlock(&lock);
}
