# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packet-in and packet-out: the controller headers in front of the frames of the CPU port."""

from __future__ import annotations

from finsy.proto import p4r

from softswitch.p4runtime.schema import PacketHeader
from softswitch.p4runtime.status import invalid
from softswitch.state import values


def packet_in(header: PacketHeader, frame: bytes) -> p4r.PacketIn:
    """A frame that the program sent to the CPU port, its controller header taken apart.

    Raises StatusError when the frame is shorter than the header.
    """
    size = header.width // 8
    if len(frame) < size:
        raise invalid(
            f"a packet-in of {len(frame)} bytes is shorter than its controller header, {size} bytes"
        )
    bits = int.from_bytes(frame[:size], "big")
    left = header.width
    message = p4r.PacketIn(payload=frame[size:])
    for field in header.fields:
        left -= field.width
        value = bits >> left & (1 << field.width) - 1
        message.metadata.add(metadata_id=field.id, value=values.encode(value))
    return message


def packet_out(header: PacketHeader, message: p4r.PacketOut) -> bytes:
    """The frame that the CPU port gets: the controller header put together, then the payload.

    Raises StatusError when the metadata are not those of the P4Info.
    """
    given: dict[int, bytes] = {}
    for metadata in message.metadata:
        if metadata.metadata_id in given:
            raise invalid(f"packet-out: metadata {metadata.metadata_id} is given twice")
        given[metadata.metadata_id] = metadata.value
    bits = 0
    for field in header.fields:
        data = given.pop(field.id, None)
        if data is None and field.id not in header.padding:
            raise invalid(f"packet-out: metadata {field.id} ({field.name}) is missing")
        value = values.decode(data, field.width, f"packet-out, {field.name}") if data is not None else 0
        bits = bits << field.width | value
    if given:
        raise invalid(f"packet-out: the program has no metadata with id {min(given)}")
    return bits.to_bytes(header.width // 8, "big") + message.payload
