// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// All that is no gradient: an ordinary L3 switch, as in v1model/forwarding.p4; the egress takes one off the time to live.

control Forwarding(inout headers_t hdr, inout metadata_t meta, inout ingress_intrinsic_metadata_for_tm_t to_tm,
    inout ingress_intrinsic_metadata_for_deparser_t to_deparser) {

    action drop() {
        to_deparser.drop_ctl = 1;
    }

    action nexthop(port_t port) {
        to_tm.ucast_egress_port = port;
        hdr.bridge.routed = 1;
    }

    Hash<bit<14>>(HashAlgorithm_t.CRC16) flow_hash;
    ActionProfile(NEXTHOPS) nexthops;
    ActionSelector(nexthops, flow_hash, SelectorMode_t.FAIR, NEXTHOPS_OF_A_GROUP, NEXTHOP_GROUPS) nexthop_groups;

    table ipv4_routes {
        key = {
            hdr.ipv4.dst      : lpm      @name("destination");
            hdr.ipv4.src      : selector;
            hdr.ipv4.dst      : selector;
            hdr.ipv4.protocol : selector;
            meta.l4_src_port  : selector;
            meta.l4_dst_port  : selector;
        }
        actions = { nexthop; }
        implementation = nexthop_groups;
        size = ROUTES;
    }

    action reply(mac_t mac) {
        ipv4_t asked = hdr.arp.target_ip;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = mac;
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_ip = hdr.arp.sender_ip;
        hdr.arp.sender_mac = mac;
        hdr.arp.sender_ip = asked;
        to_tm.ucast_egress_port = meta.ingress_port;
    }

    table arp_responder {
        key = { hdr.arp.target_ip : lpm @name("target"); }
        actions = { reply; @defaultonly drop; }
        const default_action = drop();
        size = ROUTES;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            if (meta.broken || hdr.ipv4.ttl == 0 || hdr.ipv4.ttl == 1) {
                drop();
            } else if (ipv4_routes.apply().miss) {
                drop();
            }
        } else if (hdr.arp.isValid() && hdr.arp.operation == ARP_REQUEST) {
            arp_responder.apply();
        } else {
            drop();
        }
    }
}
