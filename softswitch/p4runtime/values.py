# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""P4Runtime's byte strings (specification, "Bytestrings"): any length is taken as long as the value fits, the
shortest is sent."""

from __future__ import annotations

from netfold.softswitch.p4runtime.status import Code, Refused


def encode(value: int) -> bytes:
    """The canonical form of an unsigned value: the fewest bytes, at least one."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def encode_signed(value: int) -> bytes:
    """The canonical form of a two's-complement value of any width."""
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes((bits + 7) // 8, "big", signed=True)


def decode(data: bytes, width: int, what: str) -> int:
    """The value of a `bit<width>`. Raises Refused (OUT_OF_RANGE) when it is empty or does not fit."""
    if not data:
        raise Refused(Code.OUT_OF_RANGE, f"{what}: the byte string is empty")
    value = int.from_bytes(data, "big")
    if value.bit_length() > width:
        raise Refused(Code.OUT_OF_RANGE, f"{what}: 0x{data.hex()} does not fit in {width} bits")
    return value


def decode_signed(data: bytes, width: int, what: str) -> int:
    """The value of an `int<width>`. Raises Refused (OUT_OF_RANGE) when it is empty or does not fit."""
    if not data:
        raise Refused(Code.OUT_OF_RANGE, f"{what}: the byte string is empty")
    value = int.from_bytes(data, "big", signed=True)
    if not -(1 << width - 1) <= value < 1 << width - 1:
        raise Refused(Code.OUT_OF_RANGE, f"{what}: 0x{data.hex()} does not fit in {width} bits, signed")
    return value
