/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "offloads.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { FEATURES_MAX = 512, FEATURES_A_BLOCK = 32 };

static const char *const NEEDED[] = {"tx-udp-segmentation", "tx-tcp-segmentation", "tx-scatter-gather"};
enum { NEEDED_COUNT = sizeof NEEDED / sizeof *NEEDED };

static bool request(int fd, const char *ifname, void *data) {
    struct ifreq call = {0};
    memccpy(call.ifr_name, ifname, 0, IF_NAMESIZE - 1);
    call.ifr_data = data;
    return ioctl(fd, SIOCETHTOOL, &call) == 0;
}

static uint32_t count_features(int fd, const char *ifname) {
    struct {
        struct ethtool_sset_info info;
        uint32_t count;
    } set = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_FEATURES}};
    if (!request(fd, ifname, &set) || !set.info.sset_mask || set.count > FEATURES_MAX) return 0;
    return set.count;
}

static bool is_active(const struct ethtool_gfeatures *features, uint32_t index) {
    return features->features[index / FEATURES_A_BLOCK].active >> index % FEATURES_A_BLOCK & 1;
}

/* Returns whether all features of NEEDED are among `names` and active. */
static bool has_needed(const struct ethtool_gstrings *names, const struct ethtool_gfeatures *features) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < names->len; i++)
        for (uint32_t n = 0; n < NEEDED_COUNT; n++)
            if (strncmp((const char *)names->data + i * ETH_GSTRING_LEN, NEEDED[n], ETH_GSTRING_LEN) == 0)
                found += is_active(features, i);
    return found == NEEDED_COUNT;
}

bool ss_offloads_has_segmentation(int fd, const char *ifname) {
    uint32_t count = count_features(fd, ifname), blocks = (count + FEATURES_A_BLOCK - 1) / FEATURES_A_BLOCK;
    if (!count) return false;
    struct ethtool_gstrings *names = calloc(1, sizeof *names + (size_t)count * ETH_GSTRING_LEN);
    struct ethtool_gfeatures *features = calloc(1, sizeof *features + blocks * sizeof features->features[0]);
    bool has = false;
    if (names && features) {
        *names = (struct ethtool_gstrings){.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_FEATURES, .len = count};
        *features = (struct ethtool_gfeatures){.cmd = ETHTOOL_GFEATURES, .size = blocks};
        has = request(fd, ifname, names) && request(fd, ifname, features) && has_needed(names, features);
    }
    free(names);
    free(features);
    return has;
}

bool ss_device_has_queues(int fd, const char *ifname, uint32_t queues) {
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
    if (!request(fd, ifname, &channels) || !(channels.rx_count + channels.combined_count)) return queues == 1;
    return channels.rx_count + channels.combined_count == queues && channels.tx_count + channels.combined_count >= queues;
}
