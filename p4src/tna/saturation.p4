// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Overflow: is a lane of the packet that leaves saturated? The ingress checks all lanes but the first sixteen while it adds
// those; the egress checks these sixteen, which is also as far as its parser reaches on Tofino 1. A table matches eight lanes:
// the crossbar of a stage has no capacity for more.

#define LANE_KEY(n) KEY(v##n)
#define KEY(v) hdr.lanes.v : ternary;
#define LANES_0_TO_7(p) \
    LANE_KEY(p##0) LANE_KEY(p##1) LANE_KEY(p##2) LANE_KEY(p##3) LANE_KEY(p##4) LANE_KEY(p##5) LANE_KEY(p##6) LANE_KEY(p##7)
#define LANES_8_TO_F(p) \
    LANE_KEY(p##8) LANE_KEY(p##9) LANE_KEY(p##a) LANE_KEY(p##b) LANE_KEY(p##c) LANE_KEY(p##d) LANE_KEY(p##e) LANE_KEY(p##f)

#define SATURATED(r) \
    (1, r, _, _, _, _, _, _, _) : flag(); \
    (1, _, r, _, _, _, _, _, _) : flag(); \
    (1, _, _, r, _, _, _, _, _) : flag(); \
    (1, _, _, _, r, _, _, _, _) : flag(); \
    (1, _, _, _, _, r, _, _, _) : flag(); \
    (1, _, _, _, _, _, r, _, _) : flag(); \
    (1, _, _, _, _, _, _, r, _) : flag(); \
    (1, _, _, _, _, _, _, _, r) : flag(); \

#define SATURATION_TABLE(name, has_slot, keys) \
    @hidden table name { \
        key = { \
            has_slot : exact; \
            keys \
        } \
        actions = { flag; NoAction; } \
        const entries = { \
            SATURATED(0x7FFFFFFF) \
            SATURATED(0x80000000) \
        } \
        const default_action = NoAction(); \
        size = 16; \
    }

#define SIXTEEN_LANES(p) \
    SATURATION_TABLE(saturated_##p##0, HAS_SLOT, LANES_0_TO_7(p)) \
    SATURATION_TABLE(saturated_##p##8, HAS_SLOT, LANES_8_TO_F(p))

#define SIXTEEN_LANES_APPLY(p) \
    saturated_##p##0.apply(); \
    saturated_##p##8.apply();

control IngressSaturation(inout headers_t hdr) {

    @hidden action flag() {
        hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
    }

#define HAS_SLOT hdr.bridge.has_slot
    FOR_EACH_LATER_16_LANES(SIXTEEN_LANES)
#undef HAS_SLOT

    apply {
        FOR_EACH_LATER_16_LANES(SIXTEEN_LANES_APPLY)
    }
}

control EgressSaturation(inout egress_headers_t hdr, in egress_metadata_t meta) {

    @hidden action flag() {
        hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
    }

#define HAS_SLOT meta.bridge.has_slot
    SIXTEEN_LANES(0)
#undef HAS_SLOT

    apply {
        SIXTEEN_LANES_APPLY(0)
    }
}

#undef LANE_KEY
#undef KEY
#undef LANES_0_TO_7
#undef LANES_8_TO_F
#undef SATURATED
#undef SATURATION_TABLE
#undef SIXTEEN_LANES
#undef SIXTEEN_LANES_APPLY
