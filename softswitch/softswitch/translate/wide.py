# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of runtime/wide.h."""

from __future__ import annotations

from softswitch.translate.code import Code
from softswitch.translate.value import I64, U64, Val

NAMES = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}


def constant(code: Code, value: int, n: int) -> str:
    """The name of an array that holds `value`."""
    words = [(value >> (64 * i)) & (1 << 64) - 1 for i in range(n)]
    code.count += 1
    name = f"k{code.count}"
    code.add(f"static const ss_limb {name}[{n}] = {{{', '.join(f'0x{w:x}ull' for w in words)}}};")
    return name


def limbs(code: Code, v: Val, n: int) -> str:
    """`v` as an array of n limbs."""
    if v.wide and v.limbs == n:
        return v.code
    name = code.array(n)
    if v.wide:
        code.add(f"ss_w_cp({name}, {n}, {v.code}, {v.limbs});")
    elif v.lo < 0:
        code.add(f"ss_w_s({name}, {n}, {v.as_type(I64)});")
    else:
        code.add(f"ss_w_u({name}, {n}, {v.as_type(U64)});")
    return name


def binary(code: Code, op: str, a: str, b: str, n: int) -> str:
    name = code.array(n)
    code.add(f"ss_w_{NAMES[op]}({name}, {a}, {b}, {n});")
    return name


def clamp(code: Code, v: Val, lo: int, hi: int) -> str:
    name = code.array(v.limbs)
    low, high = constant(code, lo, v.limbs), constant(code, hi, v.limbs)
    code.add(
        f"ss_w_cp({name}, {v.limbs}, ss_w_cmp({v.code}, {low}, {v.limbs}) < 0 ? {low} : "
        f"ss_w_cmp({v.code}, {high}, {v.limbs}) > 0 ? {high} : {v.code}, {v.limbs});"
    )
    return name


def clamp_u32(code: Code, v: Val) -> str:
    """uint32_t, all ones when the number is negative or does not fit."""
    name = clamp(code, v, -1, (1 << 32) - 1) if v.limbs > 1 else v.code
    return f"(uint32_t){name}[0]"
