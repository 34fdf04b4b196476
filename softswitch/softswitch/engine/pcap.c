/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "pcap.h"

#include <time.h>

enum { SNAP_LENGTH = 262144, LINKTYPE_ETHERNET = 1, BUFFER_SIZE = 256 * 1024 };

FILE *ss_pcap_open(const char *path) {
    struct {
        uint32_t magic;
        uint16_t major, minor;
        uint32_t reserved[2], snap_length, link_type;
    } header = {0xa1b23c4d, 2, 4, {0, 0}, SNAP_LENGTH, LINKTYPE_ETHERNET};
    FILE *file = fopen(path, "wbe");
    if (!file) return NULL;
    setvbuf(file, NULL, _IOFBF, BUFFER_SIZE);
    if (fwrite(&header, sizeof header, 1, file) != 1 || fflush(file) != 0) {
        fclose(file);
        return NULL;
    }
    return file;
}

void ss_pcap_write(FILE *file, const uint8_t *data, uint32_t length) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint32_t record[4] = {(uint32_t)now.tv_sec, (uint32_t)now.tv_nsec, length, length};
    fwrite(record, sizeof record, 1, file);
    fwrite(data, length, 1, file);
}
