/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Writes frames to a capture file (the classic pcap format with nanosecond times, draft-ietf-opsawg-pcap). */

#ifndef SS_PCAP_H
#define SS_PCAP_H

#include <stdint.h>
#include <stdio.h>

/* Opens (and empties) the file and writes the format's header. Returns NULL, with errno set, on failure. */
FILE *ss_pcap_open(const char *path);

/* Appends one frame with the current wall-clock time. Writes are buffered: flush the file when idle. */
void ss_pcap_write(FILE *file, const uint8_t *data, uint32_t length);

#endif
