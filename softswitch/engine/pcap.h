/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Writes frames to a capture file (the classic pcap format with nanosecond times, draft-ietf-opsawg-pcap). */

#ifndef NETFOLD_PCAP_H
#define NETFOLD_PCAP_H

#include <stdint.h>
#include <stdio.h>

/* Opens (and empties) the file and writes the format's header. NULL, with errno set, on failure. */
FILE *pcap_open(const char *path);

/* Appends one frame with the wall-clock time of now. Buffered: flush the file when idle. */
void pcap_write(FILE *file, const uint8_t *data, uint32_t length);

#endif
