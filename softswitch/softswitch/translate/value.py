# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Typed pieces of C. BMv2 computes with numbers without bound; here each piece has the range of its value, and the
range chooses the C type, so that results are the same and most programs compute in 32 or 64 bits."""

from __future__ import annotations

from dataclasses import dataclass

I32, U32, I64, U64 = "int32_t", "uint32_t", "int64_t", "uint64_t"


def native_type(lo: int, hi: int) -> str | None:
    """The smallest C type for a range, or None when it needs more than 64 bits."""
    if lo >= -(1 << 31) and hi < 1 << 31:
        return I32
    if lo >= 0 and hi < 1 << 32:
        return U32
    if lo >= -(1 << 63) and hi < 1 << 63:
        return I64
    if lo >= 0 and hi < 1 << 64:
        return U64
    return None


def limbs_for(lo: int, hi: int) -> int:
    """64-bit limbs for a range in two's complement."""
    bits = max(hi.bit_length(), (~lo).bit_length() if lo < 0 else 0) + 1
    return max(1, (bits + 63) // 64)


def field_range(width: int, signed: bool) -> tuple[int, int]:
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)


def literal(value: int, ctype: str) -> str:
    """A C literal of exactly this type."""
    if ctype == I32:
        return f"({I32})0x{value & 0xFFFFFFFF:x}u" if value < 0 else str(value)
    if ctype == U32:
        return f"0x{value:x}u"
    if ctype == I64:
        return f"({I64})0x{value & (1 << 64) - 1:x}ull"
    return f"0x{value:x}ull"


@dataclass(frozen=True)
class Val:
    """A number: C code of type `ctype` when native, else the name of an array of `limbs` limbs."""

    code: str
    lo: int
    hi: int
    limbs: int = 0

    @property
    def wide(self) -> bool:
        return self.limbs > 0

    @property
    def ctype(self) -> str:
        t = native_type(self.lo, self.hi)
        assert t is not None
        return t

    def as_type(self, ctype: str) -> str:
        return self.code if self.ctype == ctype else f"({ctype})({self.code})"

    @property
    def const(self) -> int | None:
        return self.lo if self.lo == self.hi else None
