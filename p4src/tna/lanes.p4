// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What is the sum? States as in v1model/lanes.p4; four lanes to a stage.
//
// A lane's table matches the child's own bit instead of waiting a stage for is_duplicate.

control Lanes(inout headers_t hdr, in metadata_t meta) {

#define LANE(n) \
    Register<lane_t, slot_index_t>(SLOTS, 0) lane_##n; \
    RegisterAction<lane_t, slot_index_t, lane_field_t>(lane_##n) claim_lane_##n = { \
        void apply(inout lane_t held) { held = (lane_t)hdr.lanes.v##n; } \
    }; \
    RegisterAction<lane_t, slot_index_t, lane_field_t>(lane_##n) add_lane_##n = { \
        void apply(inout lane_t held, out lane_field_t sum) { \
            if (held < LANE_MAX && held >= LANE_MIN + 1) { held = held |+| (lane_t)hdr.lanes.v##n; } \
            sum = (lane_field_t)held; \
        } \
    }; \
    RegisterAction<lane_t, slot_index_t, lane_field_t>(lane_##n) read_lane_##n = { \
        void apply(inout lane_t held, out lane_field_t sum) { sum = (lane_field_t)held; } \
    }; \
    @hidden action claim_##n() { claim_lane_##n.execute(meta.slot.index); } \
    @hidden action add_##n() { hdr.lanes.v##n = add_lane_##n.execute(meta.slot.index); } \
    @hidden action read_##n() { hdr.lanes.v##n = read_lane_##n.execute(meta.slot.index); } \
    LANE_ACCESS(access_##n, claim_##n, add_##n, read_##n)

    FOR_EACH_LANE(LANE)

    apply {
#define LANE_APPLY(n) access_##n.apply();
        FOR_EACH_LANE(LANE_APPLY)
    }
}
#undef LANE
#undef LANE_APPLY
