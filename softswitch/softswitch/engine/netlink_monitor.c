/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "netlink_monitor.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

int ss_netlink_open(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) return -errno;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

void ss_netlink_drain(int fd) {
    char buffer[16384];
    while (recv(fd, buffer, sizeof buffer, 0) >= 0 || errno == ENOBUFS || errno == EINTR) {
    }
}
