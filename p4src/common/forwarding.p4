// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// All other traffic: an ordinary L3 switch. IPv4 by longest prefix with ECMP; ARP for every address that the switch can
// route to is answered with the switch's own MAC address, so that hosts need no static entries. The egress decrements the
// TTL.

control Forwarding(inout headers_t hdr, inout metadata_t meta, EGRESS_TARGET) {

    action drop() {
        DROP;
    }

    action nexthop(NEIGHBOR port_t port) {
        SEND_BY(port);
        ROUTED;
    }

    NEXTHOP_SETS

    @id(8)
    table ipv4_routes {
        key = {
            hdr.ipv4.dst : lpm @name("destination") @format(IPV4_ADDRESS);
            FLOW_SELECTORS
        }
        actions = { nexthop; }
        implementation = NEXTHOP_CHOICE;
        size = ROUTES;
    }

    action reply(@format(MAC_ADDRESS) mac_t mac) {
        ipv4_t target = hdr.arp.target_ip;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = mac;
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_ip = hdr.arp.sender_ip;
        hdr.arp.sender_mac = mac;
        hdr.arp.sender_ip = target;
        SEND_BY(meta.ingress_port);
    }

    @id(9)
    table arp_responder {
        key = { hdr.arp.target_ip : lpm @name("target") @format(IPV4_ADDRESS); }
        actions = { reply; @defaultonly drop; }
        const default_action = drop();
        size = ROUTES;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            if (meta.ip_invalid || hdr.ipv4.ttl == 0 || hdr.ipv4.ttl == 1) {
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
