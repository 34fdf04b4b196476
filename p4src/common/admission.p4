// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Which sender is it, and what is the role of this switch for its tree?
//
// One entry for each (ingress port, UDP port, kind, tree, child) that the controller admitted, in the tree's epoch and slot
// range; a host reaches nothing else (I4). The UDP port authenticates the process: the host kernel gives it to one process.
// The slot key is ternary: its high bits are 0 for a slot inside the tree's range, so a forged index misses. Two entries of
// lower priority give the reason why a packet of an admitted child is refused:
//
//   priority  epoch    slot      action
//   30        exact    < A       add_at_inner / add_at_root / forward / multicast / access_slot
//   20        exact    any       refuse(BAD_SLOT)
//   10        any      any       refuse(STALE_EPOCH)
//   (miss)                       refuse(UNADMITTED)

control Admission(in headers_t hdr, inout metadata_t meta) {

    @brief("Refuse the packet for the given reason, a verdict number of 16 or more.")
    action refuse(tree_index_t tree_index, verdict_t reason) {
        meta.role = role_t.NONE;
        meta.tree_index = tree_index;
        meta.verdict = reason;
    }

    @brief("This switch is an inner node of the tree: accumulate, send the partial sum up.")
    action add_at_inner(tree_index_t tree_index, bitmap_t child_mask, bitmap_t full_mask, slot_t base) {
        meta.role = role_t.INNER;
        meta.tree_index = tree_index;
        meta.child_mask = child_mask;
        meta.full_mask = full_mask;
        meta.slot.index = (slot_index_t)(base + hdr.netfold.slot);
    }

    @brief("This switch is the root of the tree: accumulate, send the result down.")
    action add_at_root(tree_index_t tree_index, bitmap_t child_mask, bitmap_t full_mask, slot_t base) {
        meta.role = role_t.ROOT;
        meta.tree_index = tree_index;
        meta.child_mask = child_mask;
        meta.full_mask = full_mask;
        meta.slot.index = (slot_index_t)(base + hdr.netfold.slot);
    }

    @brief("This switch is on the path of the child's edge.")
    action forward(tree_index_t tree_index, NEIGHBOR port_t port) {
        meta.role = role_t.FORWARD;
        meta.tree_index = tree_index;
        meta.up_port = port;
    }

    @brief("A result from the root: replicate it to the result tree's ports.")
    action multicast(tree_index_t tree_index) {
        meta.role = role_t.MULTICAST;
        meta.tree_index = tree_index;
    }

    @brief("The controller reads or resets a slot.")
    action access_slot(tree_index_t tree_index, slot_t base) {
        meta.role = role_t.MANAGEMENT;
        meta.tree_index = tree_index;
        meta.slot.index = (slot_index_t)(base + hdr.netfold.slot);
    }

    @id(1)
    table admission {
        key = {
            meta.ingress_port      : exact   @name("ingress_port");
            hdr.udp.dst_port       : exact   @name("udp_port");
            hdr.netfold.kind       : exact   @name("kind");
            hdr.netfold.tree       : exact   @name("tree");
            hdr.netfold.child      : ternary @name("child");
            hdr.netfold.tag[31:20] : ternary @name("epoch");
            hdr.netfold.slot       : ternary @name("slot");
        }
        actions = { add_at_inner; add_at_root; forward; multicast; access_slot; refuse; }
        const default_action = refuse(0, verdict_t.UNADMITTED);
        size = ADMISSIONS;
    }

    apply {
        admission.apply();
    }
}
