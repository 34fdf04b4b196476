# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Pads numbers with leading zeros to the full width of their field. P4Runtime (spec 8.4) has them without, but some
servers accept no shorter ones: p4lang/PI before its revision b2760a8, which Tofino's drivers use. Answers need no
conversion."""

from __future__ import annotations

from collections.abc import Iterator

import finsy as fy
from finsy.proto import p4r


def pad_to_width(entity: p4r.Entity, schema: fy.P4Schema) -> p4r.Entity:
    """Change the entity in place and return it."""
    if entity.HasField("table_entry"):
        entry = entity.table_entry
        widths = {field.id: field.bitwidth for field in schema.tables[entry.table_id].match_fields}
        for match in entry.match:
            kind = match.WhichOneof("field_match_type")
            assert kind is not None
            value = getattr(match, kind)
            for part in ("value", "mask"):
                if part in value.DESCRIPTOR.fields_by_name:
                    setattr(value, part, _padded(getattr(value, part), widths[match.field_id]))
        calls = list(_calls(entry.action))
    elif entity.HasField("action_profile_member"):
        calls = [entity.action_profile_member.action]
    else:
        calls = []
    for call in calls:
        params = {param.id: param.bitwidth for param in schema.actions[call.action_id].params}
        for param in call.params:
            param.value = _padded(param.value, params[param.param_id])
    return entity


def pad_packet_to_width(request: p4r.StreamMessageRequest, schema: fy.P4Schema) -> p4r.StreamMessageRequest:
    """Change the metadata of the packet-out in place and return it."""
    fields = schema.controller_packet_metadata["packet_out"].metadata
    for field in request.packet.metadata:
        field.value = _padded(field.value, fields[field.metadata_id].bitwidth)
    return request


def _calls(chosen: p4r.TableAction) -> Iterator[p4r.Action]:
    """The actions of an entry; none for a member or a group, which have their own."""
    if chosen.HasField("action"):
        yield chosen.action
    for weighted in chosen.action_profile_action_set.action_profile_actions:
        yield weighted.action


def _padded(value: bytes, bits: int) -> bytes:
    return value.rjust((bits + 7) // 8, b"\0")
