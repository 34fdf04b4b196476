/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* libibverbs without devices: every opened device is a host of its own on one network in this process, whose switch adds
 * up message m of all hosts' newest connections and gives each host the sum where its predecessor's message would be. */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

/* What the network does from its message `at` on (counted over all connections since `fake_start`). */
enum fault {
    FAULT_NONE,
    FAULT_RAW,    /* two messages pass as they were sent */
    FAULT_BREAK,  /* the connections break, once */
    FAULT_SOME,   /* the sum reaches host 0 alone, whose own send is acknowledged; then the connections break */
    FAULT_ENDS,   /* as FAULT_SOME, but it reaches the last host, too */
    FAULT_UNHEARD, /* the acknowledgment of host 0's message is lost, and never comes again */
    FAULT_BEHIND, /* the connections break behind a message that all have, before a program looks */
    FAULT_UNSENT, /* the sum in host 0's message is lost, and comes when it sends again (fake_send_again) */
};

/* Host i has this address; otherwise 10.0.0.1 + i. */
void fake_address(int host, const char *address);
void fake_start(int hosts, enum fault fault, int at);
/* Connections that are made from now on belong to a switch that adds up as many hosts: the first ones. */
void fake_hosts(int hosts);
/* From message `at` on this host's programs do not see its completions, until it is released. */
void fake_hold(int host, int at);
void fake_release(void);
/* What FAULT_UNSENT lost, if host 0 still has its connection. */
void fake_send_again(void);
/* Everything that was made has been taken down again. */
int fake_left_over(void);
/* Lanes are float32, in the hosts' byte order. */
void fake_floats(void);

#endif
