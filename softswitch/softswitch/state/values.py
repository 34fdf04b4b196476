# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Byte strings (P4Runtime specification, "Bytestrings"): any length is taken as long as the value fits, the shortest is
given back."""

from __future__ import annotations

from softswitch.errors import OutOfRangeError


def encode(value: int) -> bytes:
    """The canonical form of an unsigned value: the fewest bytes, at least one."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def encode_signed(value: int) -> bytes:
    """The canonical form of a two's-complement value of any width."""
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes((bits + 7) // 8, "big", signed=True)


def decode(data: bytes, width: int, what: str) -> int:
    """The value of a `bit<width>`. Raises OutOfRangeError when it is empty or does not fit."""
    _require_bytes(data, what)
    value = int.from_bytes(data, "big")
    if value.bit_length() > width:
        raise OutOfRangeError(f"{what}: 0x{_shown(data)} does not fit {width} bits")
    return value


def decode_signed(data: bytes, width: int, what: str) -> int:
    """The value of an `int<width>`. Raises OutOfRangeError when it is empty or does not fit."""
    _require_bytes(data, what)
    value = int.from_bytes(data, "big", signed=True)
    if not -(1 << width - 1) <= value < 1 << width - 1:
        raise OutOfRangeError(f"{what}: 0x{_shown(data)} does not fit {width} bits, signed")
    return value


def _require_bytes(data: bytes, what: str) -> None:
    if not data:
        raise OutOfRangeError(f"{what}: an empty byte string; give at least one byte")


def _shown(data: bytes) -> str:
    return data.hex() if len(data) <= 64 else f"{data[:64].hex()}... ({len(data)} bytes)"
