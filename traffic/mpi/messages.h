/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Messages between the worker of a host (member.c) and its agent (agent.py), over a stream of packets (SOCK_SEQPACKET). Each begins
 * with its type. Both ends are of one build: structures travel as they are. */

#ifndef NETFOLD_MPI_MESSAGES_H
#define NETFOLD_MPI_MESSAGES_H

#include "../engine/io/engine.h"

enum { NM_TEXT_BYTES = 65536, NM_SOCKETS_MAX = 64 };

/* W: sent by the worker. A: sent by the agent. */
enum nm_message_type {
    NM_HOST = 1, /* A, text: this machine's host in the fabric */
    NM_SUBMIT, /* W, text: the job's hosts, separated by commas; answered by NM_JOB */
    NM_JOB, /* A, text: the job's name */
    NM_JOIN, /* W, text: the job's name */
    NM_PREPARE, /* A: close the sockets of the epoch; answered by NM_READY */
    NM_READY, /* W */
    NM_ASSIGN, /* A, struct nm_assign, with the epoch's sockets */
    NM_DEPARTURES, /* A, struct nm_departures */
    NM_REPORT, /* W, struct nm_report: the heartbeat */
    NM_NEW_EPOCH, /* W, struct nm_new_epoch */
    NM_LEAVE, /* W, struct nm_report: the last message */
    NM_ENDED /* A, text: no call can succeed any more, and why */
};

struct nm_assign {
    int64_t type;
    int64_t scheme, bits; /* of floats: enum nf_scheme */
    int64_t float_dtypes; /* 1 << enum nf_dtype: long sums of these floats are the nodes' */
    struct nf_assignment assignment;
};

struct nm_departures {
    int64_t type, epoch;
    struct nf_departures departures;
};

struct nm_new_epoch {
    int64_t type;
    int64_t epoch; /* the one in which the worker cannot continue */
};

struct nm_report {
    int64_t type;
    int64_t calls, elements, bytes; /* of calls that succeeded */
    double seconds; /* spent in them */
    int64_t socket_errors, tree_count;
    struct nf_totals totals;
    struct nf_tree_report trees[NF_TREES_MAX];
};

#endif
