/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The queue of a port on a ring of software, whose driver is made to report descriptors as that of a card does. DPDK finds the ring as
 * it starts, as it does cards. */

#include <rte_ethdev.h>
#include <stdio.h>

#include "dpdk/dpdk_device.h"

enum { DESCRIPTORS = 512, FRAME = 100, FRAMES = 10 };

static int used;

static int status(void *queue, uint16_t offset) {
    (void)queue;
    return offset >= DESCRIPTORS - used ? RTE_ETH_TX_DESC_FULL : RTE_ETH_TX_DESC_DONE;
}

/* Prints the packets of the queue and their wait, in nanoseconds, for each number of used descriptors. */
int main(void) {
    char words[][32] = {"depth", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m64", "--vdev=net_ring0"};
    char *arguments[sizeof words / sizeof *words], message[1000];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) arguments[i] = words[i];
    if (ss_dpdk_start(sizeof words / sizeof *words, arguments, message, sizeof message)) return 1;
    static struct ss_interface port;
    ss_interface_init(&port, &ss_dpdk_port, 1, "net_ring0", 0, 1);
    port.device = "net_ring0";
    if (ss_interface_open(&port)) return 2;
    uint16_t id;
    if (rte_eth_dev_get_port_by_name("net_ring0", &id)) return 3;
    rte_eth_fp_ops[id].tx_descriptor_status = status;
    uint8_t frame[FRAME] = {0};
    for (uint64_t at = 1; at <= FRAMES; at++) {
        ss_interface_send(&port, frame, sizeof frame, at);
        ss_interface_flush(&port, at);
    }
    for (used = FRAMES; used >= 0; used--) {
        struct ss_backlog backlog = ss_interface_backlog(&port, 1000);
        printf("%u %lu\n", backlog.packets, (unsigned long)backlog.wait_ns);
    }
    ss_interface_close(&port);
    return rte_eth_dev_get_port_by_name("net_ring0", &id) ? 0 : 4; /* it is gone, so another one may come */
}
