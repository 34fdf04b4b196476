// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Which workers want the lanes of the sum? docs/reference/protocol.md, sections 2.1 and 3.8. All packets that are not targeted
// pass these controls unchanged.

enum bit<2> cut_t {
    NONE        = 0,
    ALL_BUT_ONE = 1,  // copies for all ports but owner_port
    ONE         = 2   // the copy for owner_port
}

// The lengths of a packet follow the lanes that it has.
#define MAKE_WHOLE \
        hdr.ipv4.total_length = 28 + NETFOLD_BYTES; \
        hdr.udp.length = 8 + NETFOLD_BYTES;
#define MAKE_SHORT \
        hdr.lanes.setInvalid(); \
        hdr.ipv4.total_length = 28 + SHORT_BYTES; \
        hdr.udp.length = 8 + SHORT_BYTES;

// The end of the ingress: the form of a sum, and which copies of a result are cut. A result that the root sends again is not.
control SumForm(inout headers_t hdr, inout metadata_t meta) {

    @brief("The port of the result tree that leads to the owner of a target. alone: it leads to no other worker.")
    action lead(NEIGHBOR port_t via, bit<1> alone) {
        meta.owner_port = via;
        if (hdr.netfold.lanes[TARGET_ALL_BUT] == 0) {
            meta.cut = cut_t.ALL_BUT_ONE;
        } else if (alone == 1) {
            meta.cut = cut_t.ONE;
        }
    }

    // The owner is not below this switch.
    action lead_away() {
        if (hdr.netfold.lanes[TARGET_ALL_BUT] == 0) {
            meta.cut = cut_t.ALL_BUT_ONE;
        }
    }

    @id(6)
    table owners {
        key = {
            meta.tree_index                 : exact @name("tree_index");
            hdr.netfold.lanes[TARGET_OWNER] : exact @name("owner");
        }
        actions = { lead; @defaultonly lead_away; }
        const default_action = lead_away();
        size = OWNERS;
    }

    @hidden action make_whole() {
        MAKE_WHOLE
    }

    @hidden action make_short() {
        MAKE_SHORT
    }

    apply {
        if (meta.is_targeted == 1) {
            if (meta.role == role_t.INNER || meta.role == role_t.ROOT) {
                if (hdr.netfold.flags & FLAG_DATA != 0) {
                    make_whole();
                } else {
                    make_short();
                }
            }
            if (hdr.lanes.isValid() && (meta.verdict == verdict_t.RESULT_SENT || meta.verdict == verdict_t.MULTICAST)) {
                owners.apply();
            }
        }
    }
}

// The egress: a copy is cut, and what follows the IP length, as the padding of a short frame, does not leave. A counter adds the
// length with which a packet came, so the bytes that leave follow from the packets of each form.
control ResultCut(inout headers_t hdr, in metadata_t meta, in standard_metadata_t standard) {

    @id(4)
    @brief("Targeted packets sent, by port * 2 + 1 if whole; each copy of a multicast.")
    counter(PORTS * 2, CounterType.packets) targeted_tx;

    @hidden action cut() {
        if ((meta.cut == cut_t.ALL_BUT_ONE && standard.egress_port != meta.owner_port) ||
            (meta.cut == cut_t.ONE && standard.egress_port == meta.owner_port)) {
            MAKE_SHORT
        }
        truncate(14 + (bit<32>)hdr.ipv4.total_length);
        targeted_tx.count((bit<32>)(standard.egress_port ++ (hdr.lanes.isValid() ? 1w1 : 1w0)));
    }

    apply {
        cut();
    }
}
#undef MAKE_WHOLE
#undef MAKE_SHORT
