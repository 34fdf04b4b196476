# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calculations: a list of fields, constants, headers and perhaps the payload, and a hash over their bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softswitch.errors import PipelineError
from softswitch.translate.expr import Expr, Node
from softswitch.translate.model import MAX_WIDTH, Model, unsupported

ALGORITHMS = {
    "crc16": "ss_crc16",
    "crc16_custom": "ss_crc16",
    "crc32": "ss_crc32",
    "crc32_custom": "ss_crc32",
    "crcCCITT": "ss_crc_ccitt",
    "crc8_custom": "ss_crc8_custom",
    "crc64_custom": "ss_crc64_custom",
    "csum16": "ss_csum16",
    "cksum16": "ss_csum16",
    "xor16": "ss_xor16",
    "xor32": "ss_xor32",
    "identity": "ss_identity",
}
ROOM = 8192  # bytes of K->shard->scratch beside the largest payload


class Calculations:
    """The calculations of a program by name."""

    def __init__(self, model: Model) -> None:
        self.by_name: dict[str, Mapping[str, Any]] = {c["name"]: c for c in model.list("calculations")}

    def emit(self, ex: Expr, name: str) -> str:
        """C of type uint64_t: the hash of the packet in hand."""
        c = self.by_name.get(name)
        if c is None:
            raise PipelineError(f"the JSON names calculation {name!r}, which it does not declare")
        return emit_hash(ex, c["algo"], c["input"], c)


def emit_hash(ex: Expr, algorithm: str, inputs: list[Node], node: Node) -> str:
    function = ALGORITHMS.get(algorithm)
    if function is None:
        raise unsupported(f"hash algorithm {algorithm}", node)
    pieces = merged(ex, inputs)
    if function == "ss_csum16" and all(map(_is_words, pieces)):
        return _sum(ex, pieces)
    ex.code.count += 1
    b = f"b{ex.code.count}"
    ex.code.add(f"struct ss_bits {b} = {{K->shard->scratch, 0}};")
    room = 0
    for item in pieces:
        room += _add(ex, b, item, node)
    if room > ROOM * 8:
        raise unsupported(f"a hash over {room} bits of fields", node)
    if any(i["type"] == "payload" for i in inputs):
        ex.code.add(f"{b}.bits = ss_bits_bytes(&{b}) * 8;")
        ex.code.add(f"if (K->payload_len) memcpy({b}.p + {b}.bits / 8, K->payload, K->payload_len);")
        ex.code.add(f"{b}.bits += K->payload_len * 8;")
    return ex.code.temp("uint64_t", f"{function}({b}.p, ss_bits_bytes(&{b}))")


def _is_words(piece: Node) -> bool:
    return bool(piece["type"] == "run" and piece["first"] % 8 == 0 and piece["bits"] % 16 == 0)


def _sum(ex: Expr, pieces: list[Node]) -> str:
    """The checksum where the fields are. A copy, read while its bytes are still on their way, would cost more."""
    total = ex.code.temp("uint64_t", "0")
    for piece in pieces:
        ref = ex.header_ref(ex.model.header(piece["header"]))
        words = f"ss_word_sum({ref.base} + {piece['first'] // 8}, {piece['bits'] // 8})"
        ex.code.add(f"if ({ref.valid}) {total} += {words};")
    return ex.code.temp("uint64_t", f"ss_word_checksum({total})")


def merged(ex: Expr, inputs: list[Node]) -> list[Node]:
    """Runs of neighboring fields of one wire header become one piece: ("run", header, first bit, bits)."""
    out: list[dict[str, Any]] = []
    for item in inputs:
        if item["type"] == "field":
            h, f = ex.model.field(item["value"][0], item["value"][1])
            if not h.metadata and not f.varbit and f.offset >= 0:
                last = out[-1] if out else None
                if (
                    last
                    and last["type"] == "run"
                    and last["header"] == h.name
                    and last["first"] + last["bits"] == f.offset
                ):
                    last["bits"] += f.width
                else:
                    out.append(
                        {"type": "run", "header": h.name, "first": f.offset, "bits": f.width, "value": None}
                    )
                continue
        out.append(dict(item))
    return list(out)


def _add(ex: Expr, b: str, item: Node, node: Node) -> int:
    kind = item["type"]
    if kind == "payload":
        return 0
    if kind == "run":
        ref = ex.header_ref(ex.model.header(item["header"]))
        ex.code.add(f"if ({ref.valid}) ss_bits_copy(&{b}, {ref.base}, {item['first']}, {item['bits']});")
        return int(item["bits"])
    if kind == "hexstr":
        return _constant(ex, b, int(item["value"], 16), int(item["bitwidth"]))
    if kind == "header":
        return _header(ex, b, item["value"])
    if kind == "field":
        h, f = ex.model.field(item["value"][0], item["value"][1])
        if f.varbit:
            ref = ex.header_ref(h)
            ex.code.add(
                f"if ({ref.valid}) ss_bits_copy(&{b}, {ref.base} + {h.type.var_offset}, 0, {ref.var_bits});"
            )
            return h.type.var_max * 8
        v = ex.modulo(item, f.width)
        if f.width <= 64:
            ex.code.add(f"ss_bits_add(&{b}, {v.as_type('uint64_t')}, {f.width});")
        else:
            for at in range(f.width, 0, -64):
                low = max(at - 64, 0)
                ex.code.add(f"ss_bits_add(&{b}, {_slice(v.code, low, at - low)}, {at - low});")
        return f.width
    raise unsupported(f"input of type {kind} to a hash", node)


def _slice(limbs: str, low: int, width: int) -> str:
    limb, shift = divmod(low, 64)
    if shift == 0:
        return f"{limbs}[{limb}]"
    if shift + width <= 64:
        return f"({limbs}[{limb}] >> {shift})"
    return f"(({limbs}[{limb}] >> {shift}) | ({limbs}[{limb + 1}] << {64 - shift}))"


def _constant(ex: Expr, b: str, value: int, width: int) -> int:
    if not 0 <= width <= MAX_WIDTH:
        raise unsupported(f"a constant of {width} bits in a hash", ex.node)
    for at in range(width, 0, -64):
        low = max(at - 64, 0)
        word = (value >> low) & ((1 << (at - low)) - 1)
        ex.code.add(f"ss_bits_add(&{b}, 0x{word:x}ull, {at - low});")
    return width


def _header(ex: Expr, b: str, name: str) -> int:
    h = ex.model.header(name)
    ref = ex.header_ref(h)
    t = h.type
    split = t.varbit.offset if t.varbit else t.bits
    with ex.code.block(f"if ({ref.valid})"):
        ex.code.add(f"ss_bits_copy(&{b}, {ref.base}, 0, {split});")
        if t.varbit:
            ex.code.add(f"ss_bits_copy(&{b}, {ref.base} + {t.var_offset}, 0, {ref.var_bits});")
            ex.code.add(f"ss_bits_copy(&{b}, {ref.base}, {split}, {t.bits - split});")
    return t.bits + t.var_max * 8
