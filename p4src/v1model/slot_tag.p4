// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Is the chunk new? The tag register has the chunk that a slot holds.
//
//   register  tags[slot]: epoch ++ round; 0 if never used, older than any tag (epochs begin at 1)
//   written   by a packet of a newer chunk, which claims the slot, and by the controller's RESET
//   cleared   never: a stale value is older than the next chunk's tag and is overwritten by it

control SlotTag(in headers_t hdr, inout metadata_t meta) {

    register<tag_t>(SLOTS) tags;

    @hidden action access() {
        tags.read(meta.slot.tag, meta.slot.index);
        if (meta.role == role_t.MANAGEMENT) {
            if (hdr.netfold.kind == kind_t.RESET) {
                tags.write(meta.slot.index, 0);
            }
        } else if (hdr.netfold.tag == meta.slot.tag) {
            meta.slot.age = age_t.SAME;
        } else if (hdr.netfold.tag > meta.slot.tag) {
            meta.slot.age = age_t.NEWER;
            tags.write(meta.slot.index, hdr.netfold.tag);
        } else {
            meta.slot.age = age_t.OLDER;
        }
    }

    apply {
        access();
    }
}
