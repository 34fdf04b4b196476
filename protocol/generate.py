# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Writes from wire.yaml what each language states of the wire: whole files for P4, C and Python, a marked block of the
Wireshark dissector and of docs/reference/protocol.md. `python -m netfold.protocol.generate` writes them;
`--check` names the stale ones and exits 1."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FOLDER = Path(__file__).resolve().parent
REPOSITORY = FOLDER.parent
Wire = Mapping[str, Any]
Generator = Callable[[Wire], Iterator[str]]


def load() -> Wire:
    """The content of wire.yaml."""
    wire: Wire = yaml.safe_load((FOLDER / "wire.yaml").read_text())
    return wire


def p4(wire: Wire) -> Iterator[str]:
    """Constants and enums for p4src/common."""
    first, last = wire["udp_ports"]["first"], wire["udp_ports"]["last"]
    yield from ("#ifndef NETFOLD_WIRE", "#define NETFOLD_WIRE", "")
    yield f"const bit<4>  NETFOLD_VERSION      = {wire['version']};"
    yield f"const bit<16> NETFOLD_UDP_PORTS    = 0x{first:04X};  // {first} ... {last}"
    yield f"const bit<16> NETFOLD_UDP_MASK     = 0x{0xFFFF ^ first ^ last:04X};"
    yield from (f"const bit<16> NETFOLD_HEADER_BYTES = {_header_bytes(wire)};", "")
    yield from (_p4_flag(f) for f in wire["flags"] if "ability" not in f)
    yield from ("", "const lane_t LANE_MAX = 0x7FFFFFFF;", "const lane_t LANE_MIN = -0x80000000;", "")
    yield from _enum("enum bit<4> kind_t {", "", wire["kinds"], "}", 8)
    yield from _enum("enum bit<5> verdict_t {", "", {"NONE": 0} | _verdicts(wire), "}", 13)
    yield "#endif"


def p4_targets(wire: Wire) -> Iterator[str]:
    """Constants of targeted packets, for programs that know them."""
    yield from ("#ifndef NETFOLD_TARGET_WIRE", "#define NETFOLD_TARGET_WIRE", "")
    yield from (_p4_flag(f) for f in wire["flags"] if f.get("ability") == "targets")
    target = wire["target"]
    yield from ("", f"const bit<16> TARGETED = 0x{target['targeted']:04X};  // in netfold.lanes")
    yield f"#define TARGET_ALL_BUT {_bits(target['all_but'])}"
    yield f"#define TARGET_OWNER {_bits(target['none'])}"
    yield from ("", "#endif")


def c(wire: Wire) -> Iterator[str]:
    """The header's struct, constants and verdicts for the engine."""
    yield from ("#ifndef NETFOLD_HEADER_H", "#define NETFOLD_HEADER_H", "", "#include <stdint.h>", "")
    yield "/* In network byte order; the lanes follow. */"
    yield "struct header {"
    yield from (f"    uint{field['bits']}_t {field['name']};" for field in wire["header"])
    yield from ("};", "", "enum {")
    version = wire["version"] << 4
    numbers = {
        "NF_HEADER_BYTES": _header_bytes(wire),
        "NF_LANES_MAX": wire["lanes_max"],
        "ROUND_BITS": _part(wire, "round")["bits"],
        "VERSION_KIND_GRADIENT": version | wire["kinds"]["GRADIENT"],
        "VERSION_KIND_RESULT": version | wire["kinds"]["RESULT"],
        "COUNT_MASK": (1 << wire["count_bits"]) - 1,
        "ROCE_BIT": 1 << wire["count_bits"],
        **{name.upper(): number for name, number in _target_names(wire).items()},
    }
    yield from (f"    {name} = {number:#x}," for name, number in numbers.items())
    yield from (f"    FLAG_{flag['name']} = 0x{1 << flag['bit']:02X}," for flag in wire["flags"])
    yield from ("};", "", '_Static_assert(sizeof(struct header) == NF_HEADER_BYTES, "no padding");', "")
    yield "/* Section 4 of docs/reference/protocol.md; NF_VERDICTS is the size of an array of counters. */"
    yield from _enum("enum nf_verdict {", "NF_", _verdicts(wire) | {"VERDICTS": 32}, "};")
    yield from (
        "static inline uint32_t *lanes_of(struct header *h) { return (uint32_t *)(h + 1); }",
        "",
        "#endif",
    )


def python(wire: Wire) -> Iterator[str]:
    """Constants and enums, the source of wire.py."""
    yield from ('"""The numbers of the wire."""', "", "from enum import IntEnum, IntFlag", "")
    ports, count = wire["udp_ports"], (1 << wire["count_bits"]) - 1
    sticky = " | ".join(f"Flag.{f['name']}" for f in wire["flags"] if f.get("sticky") and "ability" not in f)
    yield f"VERSION = {wire['version']}"
    yield f"HEADER_BYTES = {_header_bytes(wire)}"
    yield f"PORT_FIRST, PORT_LAST = {ports['first']}, {ports['last']}"
    yield f"EPOCH_MAX = {(1 << _part(wire, 'epoch')['bits']) - 1}"
    yield f"ROUNDS = {1 << _part(wire, 'round')['bits']}"
    yield f"SLOTS_MAX = {wire['slots_max']}"
    yield f"LANES_MAX = {wire['lanes_max']}"
    yield from (f"{name.upper()} = 0x{number:04X}" for name, number in _target_names(wire).items())
    yield from (f"COUNT_MAX = {count}", '"""Contributions that a sum with a quorum can count."""')
    fields = ((f["name"], "u1" if f["bits"] == 8 else f">u{f['bits'] // 8}") for f in wire["header"])
    yield "HEADER_FIELDS = ("
    yield from (f'    ("{name}", "{kind}"),' for name, kind in fields)
    yield from (")", '"""Name and numpy type of each field, in wire order."""', "")
    for title, doc, members in (
        (
            "Kind(IntEnum)",
            "Type of a packet; READ and RESET are management, the controller's only.",
            wire["kinds"],
        ),
        ("Flag(IntFlag)", "Bits of the header's flags.", {f["name"]: 1 << f["bit"] for f in wire["flags"]}),
        (
            "Verdict(IntEnum)",
            "A node's decision about a packet: index of the counter `verdicts`.",
            _verdicts(wire),
        ),
    ):
        yield from ("", f"class {title}:", f'    """{doc}"""', "")
        yield from (f"    {name} = {number}" for name, number in members.items())
        yield ""
    yield "    @property"
    yield "    def label(self) -> str:"
    yield '        """Name in metrics and reports."""'
    yield "        return self.name.lower()"
    yield from ("", "", f"STICKY_FLAGS = {sticky}", '"""The flags that a slot keeps of its contributions."""')


def lua(wire: Wire) -> Iterator[str]:
    """Tables of the dissector."""
    ports = wire["udp_ports"]
    yield f'local PORTS = "{ports["first"]}-{ports["last"]}"'
    yield f"local VERSION = {wire['version']}"
    yield f"local HEADER = {_header_bytes(wire)}"
    yield from (f"local {name.upper()} = {number:#x}" for name, number in _target_names(wire).items())
    kinds = ", ".join(f'[{number}] = "{name}"' for name, number in wire["kinds"].items())
    yield f"local KINDS = {{ {kinds} }}"
    yield from ("-- name, label, offset, bytes, bits of the mask (0: all)", "local FIELDS = {")
    for offset, field in _offsets(wire):
        size, parts = field["bits"] // 8, field.get("parts", [field])
        left = field["bits"]
        for part in parts:
            left -= part["bits"]
            mask = ((1 << part["bits"]) - 1 << left) if "parts" in field else 0
            yield f'    {{ "{part["name"]}", "{part["label"]}", {offset}, {size}, {mask:#x} }},'
    yield from ("}", "local FLAGS = {")
    yield from (
        f'    {{ "{f["name"].lower()}", "{f["label"]}", {1 << f["bit"]:#04x} }},' for f in wire["flags"]
    )
    yield "}"


def header_table(wire: Wire) -> Iterator[str]:
    """Section 2 of docs/reference/protocol.md."""
    kinds = ", ".join(f"{number} {name}" for name, number in wire["kinds"].items())
    yield from ("| offset | field | bits | meaning |", "|---|---|---|---|")
    for offset, field in _offsets(wire):
        at = 0
        for part in field.get("parts", [field]):
            place = f"{offset + at / 8:g}"
            yield f"| {place} | {part['name']} | {part['bits']} | {part['meaning'].format(kinds=kinds)} |"
            at += part["bits"]
    yield f"| {_header_bytes(wire)} | lane 0 ... L-1 | 32 each | two's complement; with F, IEEE 754 binary32 |"
    yield from ("", "| flag | name | bit | meaning |", "|---|---|---|---|")
    yield from (
        f"| {f['letter']} | {f['name'].lower()} | {f['bit']} | {f['meaning']} |" for f in wire["flags"]
    )


def verdict_table(wire: Wire) -> Iterator[str]:
    """Section 4 of docs/reference/protocol.md."""
    yield from ("| verdict | name | meaning |", "|---|---|---|")
    yield from (f"| {v['number']} | `{v['name'].lower()}` | {v['meaning']} |" for v in wire["verdicts"])


class GeneratedFile(NamedTuple):
    """A file that `generator` writes whole (behind `comment`), or its block between the marks of `block`."""

    path: str
    generator: Generator
    comment: str
    block: str = ""


TARGETS = (
    GeneratedFile("p4src/common/wire.p4", p4, "// {}"),
    GeneratedFile("p4src/v1model/target_wire.p4", p4_targets, "// {}"),
    GeneratedFile("traffic/engine/wire/header.h", c, "/* {} */"),
    GeneratedFile("protocol/constants.py", python, "# {}"),
    GeneratedFile("protocol/wireshark/netfold.lua", lua, "-- {}", "wire"),
    GeneratedFile("docs/reference/protocol.md", header_table, "<!-- {} -->", "header"),
    GeneratedFile("docs/reference/protocol.md", verdict_table, "<!-- {} -->", "verdicts"),
)
LICENSE = ("SPDX-FileCopyrightText: 2026 The netfold authors", "SPDX-License-Identifier: Apache-2.0")
ORIGIN = "generated from protocol/wire.yaml by `make wire`"


def render(target: GeneratedFile, wire: Wire, text: str) -> str:
    """The file's text with `target` renewed; `text` is what it has now. Raises ValueError if the block is missing."""
    comment = target.comment.format
    if not target.block:
        head = [comment(line) for line in (*LICENSE, ORIGIN)]
        return "\n".join([*head, "", *target.generator(wire)]) + "\n"
    first, last = comment(f"{target.block}: {ORIGIN}"), comment(f"{target.block}: end")
    before, found, rest = text.partition(first + "\n")
    _, end, after = rest.partition(last)
    if not (found and end):
        raise ValueError(f"{target.path} has no lines '{first}' and '{last}'")
    return before + found + "\n".join(target.generator(wire)) + "\n" + end + after


def stale(root: Path = REPOSITORY) -> list[str]:
    """Paths of generated files that differ from what wire.yaml gives."""
    wire = load()
    texts = [(t, path.read_text() if (path := root / t.path).exists() else "") for t in TARGETS]
    return [target.path for target, text in texts if render(target, wire, text) != text]


def write(root: Path = REPOSITORY) -> None:
    """Renews all targets."""
    wire = load()
    for target in TARGETS:
        path = root / target.path
        path.write_text(render(target, wire, path.read_text() if path.exists() else ""))


def _header_bytes(wire: Wire) -> int:
    return int(sum(field["bits"] for field in wire["header"]) // 8)


def _target_names(wire: Wire) -> dict[str, int]:
    target = wire["target"]
    return {
        "targeted": target["targeted"],
        "target_all_but": target["all_but"],
        "target_none": target["none"],
    }


def _p4_flag(flag: Mapping[str, Any]) -> str:
    return f"const flags_t FLAG_{flag['name']:<11} = 0x{1 << flag['bit']:02X};  // {flag['label']}"


def _bits(mask: int) -> str:
    """The bits of a mask without gaps, as P4 slices them."""
    return f"{mask.bit_length() - 1}:{(mask & -mask).bit_length() - 1}"


def _part(wire: Wire, name: str) -> Mapping[str, Any]:
    (found,) = (part for field in wire["header"] for part in field.get("parts", ()) if part["name"] == name)
    return dict(found)


def _offsets(wire: Wire) -> Iterator[tuple[int, Mapping[str, Any]]]:
    at = 0
    for field in wire["header"]:
        yield at, field
        at += field["bits"] // 8


def _verdicts(wire: Wire) -> dict[str, int]:
    return {v["name"]: v["number"] for v in wire["verdicts"]}


def _enum(head: str, prefix: str, members: Mapping[str, int], tail: str, width: int = 0) -> Iterator[str]:
    yield from (
        head,
        ",\n".join(f"    {prefix}{name:{width}} = {n}" for name, n in members.items()),
        tail,
        "",
    )


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit("\n".join(f"{path} is stale: make wire" for path in stale()) or None)
    write()
