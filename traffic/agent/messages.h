/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Messages between a worker in C and its agent, which is the job's member at the controller for it. They travel over any stream of
 * bytes: each is a header and the structure or text that follows. Both ends are little-endian machines of 64 bits. */

#ifndef NETFOLD_AGENT_MESSAGES_H
#define NETFOLD_AGENT_MESSAGES_H

#include "../engine/session/call_record.h"
#include "../engine/session/report.h"
#include "../engine/transport/assignment.h"

enum {
    NA_VERSION = 5, /* of these messages */
    NA_BODY_BYTES = 131072, /* at most */
    NA_SOCKETS_MAX = 64,
    NA_RINGS_MAX = 16, /* trees of a RoCE worker */
    NA_ADDRESS_BYTES = 16, /* IPv4, as text */
    NA_HOSTS_BYTES = 128,
    NA_RECENT_CALLS = 64, /* in a report */
    NA_CALLS_MAX = 1024 /* in NA_CALLS */
};
#define NA_CALLS_MISMATCH (UINT64_C(1) << 62)

struct na_header {
    uint32_t type, size; /* bytes of the body */
};

/* W: sent by the worker. A: sent by the agent. */
enum na_message_type {
    NA_HELLO = 1, /* W, struct na_hello: the first message, from a worker that the agent has not started */
    NA_HOST = 3, /* A, text: this machine's host in the fabric */
    NA_SUBMIT, /* W, text: the job's hosts, separated by commas; answered by NA_JOB */
    NA_JOB, /* A, text: the job's name */
    NA_JOIN, /* W, text: the job's name */
    NA_PREPARE, /* A: close the sockets of the epoch; answered by NA_READY */
    NA_READY, /* W */
    NA_ASSIGN, /* A, struct na_assign, with the epoch's sockets if the worker uses sockets */
    NA_DEPARTURES, /* A, struct na_departures */
    NA_QUEUE_PAIRS, /* W, struct na_queue_pairs */
    NA_RING, /* A, struct na_ring: all workers have registered their queue pairs */
    NA_REPORT, /* W, struct na_report: a heartbeat with counters */
    NA_NEW_EPOCH, /* W, struct na_new_epoch */
    NA_LEAVE, /* W, struct na_report: the last message */
    NA_ENDED, /* A, W, text: no call can succeed any more, and why */
    NA_CALLS /* W, struct nf_call_record each: the last calls, to be written to a file; the last part is shorter */
};

struct na_hello {
    int64_t version;
};

struct na_assign {
    int64_t lease_ms;
    int64_t scheme, bits; /* of floats: enum nf_scheme */
    int64_t float_dtypes; /* 1 << enum nf_dtype: long sums of these floats are the nodes' */
    char address[NA_ADDRESS_BYTES]; /* the worker's */
    struct nf_assignment assignment;
};

/* Workers that have left after `calls` calls (docs/reference/protocol.md, 5.7). `hosts`: their names with commas, as many as have
 * room, then "...". */
struct na_departures {
    int64_t epoch, calls;
    struct nf_departures departures;
    char hosts[NA_HOSTS_BYTES];
};

struct na_queue_pair {
    int64_t tree, send_qpn, recv_qpn, first_psn;
};

/* `calls`: completed in the job; NA_CALLS_MISMATCH if in the previous epoch this worker saw that workers called with different
 * arrays: the other workers fail their call, too. */
struct na_queue_pairs {
    int64_t epoch, tree_count;
    uint64_t calls;
    struct na_queue_pair trees[NA_RINGS_MAX];
};

struct na_neighbors {
    int64_t tree, successor_qpn, predecessor_qpn, predecessor_psn;
    char successor[NA_ADDRESS_BYTES], predecessor[NA_ADDRESS_BYTES];
};

/* Minimum and maximum of the calls that workers have completed. If they differ, rank `source_rank` hands the result of the last
 * one over. */
struct na_ring {
    int64_t epoch, source_rank, tree_count;
    uint64_t min_calls, max_calls;
    struct na_neighbors trees[NA_RINGS_MAX];
};

struct na_new_epoch {
    int64_t epoch; /* the one in which the worker cannot continue */
};

struct na_report {
    int64_t calls, elements, bytes; /* of calls that succeeded */
    int64_t chunks; /* whose sums have come */
    double seconds; /* spent in calls */
    double now; /* of the worker's clock, which may be another machine's */
    int64_t socket_errors, tree_count;
    struct nf_totals totals;
    struct nf_tree_report trees[NF_TREES_MAX];
    int64_t recent_count;
    struct nf_call_record recent[NA_RECENT_CALLS];
};

#endif
