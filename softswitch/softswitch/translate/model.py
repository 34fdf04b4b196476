# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The declarations of a BMv2 JSON file (header types, headers, stacks, unions, registers, ...) and where
each field lies in the generated PHV. Format: docs/JSON_format.md of p4lang/behavioral-model; what p4c-bm2-ss
leaves out is defaulted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from softswitch.errors import PipelineError, UnsupportedConstructError

Json = Mapping[str, Any]

# standard_metadata's fields, as struct ss_std names them, with C types' bits
STD_FIELDS = {
    "ingress_port": 32,
    "egress_spec": 32,
    "egress_port": 32,
    "instance_type": 32,
    "packet_length": 32,
    "enq_timestamp": 32,
    "enq_qdepth": 32,
    "deq_timedelta": 32,
    "deq_qdepth": 32,
    "mcast_grp": 32,
    "egress_rid": 32,
    "checksum_error": 32,
    "parser_error": 32,
    "priority": 32,
    "qid": 32,
    "ingress_global_timestamp": 64,
    "egress_global_timestamp": 64,
}
TIMES = ("ingress_global_timestamp", "egress_global_timestamp", "enq_timestamp")
MAX_CELLS = 1 << 24  # of one register, counter or meter array
MAX_VARBIT = 65535  # bytes
MAX_PHV = 1 << 18  # bytes of all headers together
MAX_WIDTH = 16384  # bits of one field or intermediate result
BIG_HEADER = 128  # bytes; such a one is cleared and copied only where it was touched


def unsupported(construct: str, node: Json | None) -> UnsupportedConstructError:
    """The refusal of a construct, with the P4 line that `node` carries."""
    info = (node or {}).get("source_info") or {}
    return UnsupportedConstructError(construct, info.get("filename"), info.get("line"))


@dataclass(frozen=True)
class Field:
    """A field of a header type. `offset` in bits from the header's start (varbits count as zero)."""

    name: str
    width: int
    signed: bool
    offset: int
    varbit: bool = False


@dataclass(frozen=True)
class HeaderType:
    """A header type. `bits` without the varbit field; `var_max` its maximum in bytes."""

    name: str
    fields: tuple[Field, ...]
    bits: int
    var_max: int

    @cached_property
    def by_name(self) -> dict[str, Field]:
        return {f.name: f for f in self.fields}

    @cached_property
    def varbit(self) -> Field | None:
        return next((f for f in self.fields if f.varbit), None)

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def is_read_exactly(self) -> bool:
        """Whether each field is read without its neighbors. The header may then end where readable memory ends."""
        return all(f.width <= 64 and f.width % 8 == f.offset % 8 == 0 for f in self.fields)

    @property
    def room(self) -> int:
        """Bytes in the PHV: the fixed part with 8 spare bytes, and the varbit part with 8 more, in words of 8."""
        var = self.var_max + 8 if self.varbit else 0
        return (self.bytes + 8 + 7) // 8 * 8 + (var + 7) // 8 * 8

    @property
    def var_offset(self) -> int:
        """Offset of the varbit part, in bytes from the header's start."""
        return (self.bytes + 8 + 7) // 8 * 8


@dataclass
class Header:
    """A header instance. For wire headers `index` counts validity bytes and `place` is the offset in the
    PHV's bytes."""

    name: str
    type: HeaderType
    metadata: bool
    number: int
    index: int = -1
    place: int = -1
    big: int = -1
    """Its place among the big headers, which are not in the buffer."""
    union: Union | None = None


@dataclass
class Stack:
    """A header stack, or a stack of unions (`members` > 1 headers an element). Elements lie at a constant stride."""

    name: str
    elements: list[list[Header]]
    index: int

    @property
    def depth(self) -> int:
        return len(self.elements)

    @property
    def members(self) -> int:
        return len(self.elements[0])

    @property
    def stride(self) -> int:
        return sum(h.type.room for h in self.elements[0])


@dataclass
class Union:
    """A header union: at most one of its headers is valid."""

    name: str
    headers: list[Header]
    entry_names: list[str]


@dataclass(frozen=True)
class Register:
    name: str
    index: int
    size: int
    width: int


@dataclass
class Model:
    """All declarations by name."""

    root: Json
    types: dict[str, HeaderType] = field(default_factory=dict)
    headers: dict[str, Header] = field(default_factory=dict)
    stacks: dict[str, Stack] = field(default_factory=dict)
    union_stacks: dict[str, Stack] = field(default_factory=dict)
    unions: dict[str, Union] = field(default_factory=dict)
    registers: dict[str, Register] = field(default_factory=dict)
    aliases: dict[str, tuple[str, str]] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    stack_of: dict[str, tuple[Stack, int]] = field(default_factory=dict)
    wire: list[Header] = field(default_factory=list)
    phv_bytes: int = 0
    validity_bytes: int = 0
    big: list[Header] = field(default_factory=list)
    """Headers that are not cleared and copied with every packet. They lie behind those that are."""

    def list(self, key: str) -> list[Any]:
        return list(self.root.get(key) or [])

    def header(self, name: str) -> Header:
        if name not in self.headers:
            raise PipelineError(f"the JSON names header {name!r}, which it does not declare")
        return self.headers[name]

    def field(self, header: str, name: str) -> tuple[Header, Field]:
        """Resolves aliases too ("intrinsic_metadata" "mcast_grp")."""
        if header not in self.headers and f"{header}.{name}" in self.aliases:
            header, name = self.aliases[f"{header}.{name}"]
        h = self.header(header)
        if name == "$valid$":
            return h, Field("$valid$", 1, False, -1)
        if name not in h.type.by_name:
            raise PipelineError(f"the JSON names field {header}.{name}, which it does not declare")
        return h, h.type.by_name[name]


def version(root: Json) -> None:
    """Raises PipelineError for a file of another major version."""
    version = (root.get("__meta__") or {}).get("version", [2, 0])
    if version[0] != 2:
        raise PipelineError(
            f"BMv2 JSON of major version {version[0]}; this reads version 2 (p4c-bm2-ss of any recent date)"
        )


def load(root: Json) -> Model:
    """Reads the declarations of a file that validate.shape has seen. Raises PipelineError for a malformed one,
    UnsupportedConstructError for what is refused."""
    model = Model(root)
    for t in model.list("header_types"):
        model.types[t["name"]] = _header_type(t)
    by_id: dict[int, Header] = {}
    for i, h in enumerate(model.list("headers")):
        header = Header(h["name"], model.types[h["header_type"]], bool(h["metadata"]), i)
        model.headers[header.name] = by_id[h["id"]] = header
    _unions(model, by_id)
    _stacks(model, by_id)
    _place(model)
    for i, r in enumerate(model.list("register_arrays")):
        model.registers[r["name"]] = Register(r["name"], i, array_size(r), int(r["bitwidth"]))
        if not 0 < int(r["bitwidth"]) <= MAX_WIDTH:
            raise unsupported(f"register of {r['bitwidth']} bits", r)
    for alias, (header_name, field_name) in model.list("field_aliases"):
        model.aliases[alias] = (header_name, field_name)
    model.errors = {str(name): int(value) for name, value in model.list("errors")}
    return model


def array_size(node: Json) -> int:
    """The cells of a register, counter or meter array: a number, whatever the file says (it becomes C)."""
    size = int(node["size"])
    if not 0 <= size <= MAX_CELLS:
        raise unsupported(f"array {node['name']} of {size} cells", node)
    return size


def _header_type(t: Json) -> HeaderType:
    fields: list[Field] = []
    offset = 0
    for f in t["fields"]:
        name, width = f[0], f[1]
        signed = bool(f[2]) if len(f) > 2 else False
        if len(f) > 3 and f[3]:
            raise unsupported(f"saturating field {t['name']}.{name}", t)
        if width == "*":
            fields.append(Field(name, 0, signed, offset, varbit=True))
            continue
        if not 0 < int(width) <= MAX_WIDTH:
            raise unsupported(f"field {t['name']}.{name} of {width} bits", t)
        fields.append(Field(name, int(width), signed, offset))
        offset += int(width)
    if sum(f.varbit for f in fields) > 1:
        raise unsupported(f"header type {t['name']} with two varbit fields", t)
    if t.get("length_exp") is not None:
        raise unsupported(f"P4_14 length expression of header type {t['name']}", t)
    var_max = max(0, int(t.get("max_length") or 0) - offset // 8) if any(f.varbit for f in fields) else 0
    if var_max > MAX_VARBIT:
        raise unsupported(f"varbit of {var_max} bytes in header type {t['name']}", t)
    return HeaderType(t["name"], tuple(fields), offset, var_max)


def _unions(model: Model, by_id: dict[int, Header]) -> None:
    entry_names = {t["name"]: [n for n, _ in t["headers"]] for t in model.list("header_union_types")}
    by_union_id: dict[int, Union] = {}
    for u in model.list("header_unions"):
        union = Union(u["name"], [by_id[i] for i in u["header_ids"]], entry_names[u["union_type"]])
        for h in union.headers:
            h.union = union
        model.unions[union.name] = by_union_id[u["id"]] = union
    for s in model.list("header_union_stacks"):
        elements = [by_union_id[i].headers for i in s["header_union_ids"]]
        model.union_stacks[s["name"]] = Stack(s["name"], elements, -1)


def _stacks(model: Model, by_id: dict[int, Header]) -> None:
    for s in model.list("header_stacks"):
        model.stacks[s["name"]] = Stack(s["name"], [[by_id[i]] for i in s["header_ids"]], -1)
    for index, stack in enumerate([*model.stacks.values(), *model.union_stacks.values()]):
        stack.index = index
        _check_stack(model, stack)
        for i, element in enumerate(stack.elements):
            for h in element:
                model.stack_of.setdefault(h.name, (stack, i))


def _check_stack(model: Model, stack: Stack) -> None:
    """Code for an index chosen at run time relies on elements of one kind at one distance."""
    kinds = {tuple(h.type.name for h in element) for element in stack.elements}
    headers = [h for element in stack.elements for h in element]
    if len(kinds) != 1 or len({h.name for h in headers}) != len(headers):
        raise PipelineError(f"the elements of stack {stack.name!r} are not of one type, or not distinct")
    if any(h.metadata or h.name in model.stack_of for h in headers):
        raise PipelineError(f"stack {stack.name!r} holds metadata, or headers of another stack")


def names_in(node: object) -> set[str]:
    """All strings of a part of the file, so also the names of the headers that it may write to."""
    if isinstance(node, str):
        return {node}
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list | tuple) else ()
    return {name for part in parts for name in names_in(part)}


def times_frames(model: Model) -> bool:
    """Whether the program may see when a frame came, to the microsecond: times of standard_metadata, or meters. The
    time in a queue is no such time: an emulated link has the clock of batches."""
    parts = ("actions", "parsers", "pipelines", "calculations", "deparsers", "learn_lists", "field_lists")
    used = names_in([model.list(part) for part in parts])
    return bool(model.list("meter_arrays")) or any(name in used for name in TIMES)


def _place(model: Model) -> None:
    """Stack elements first, in order, each stack with one spare element for indexes out of range; then the rest; big
    headers last, on 64 bytes, so that loops over them run on aligned data."""
    place = count = 0

    def put(header: Header) -> None:
        nonlocal place, count
        if header.index >= 0:
            return
        if header.type.bits % 8:
            raise unsupported(f"header {header.name} of {header.type.bits} bits, not whole bytes", None)
        header.index, header.place = count, place
        model.wire.append(header)
        count += 1
        place += header.type.room

    for stack in [*model.stacks.values(), *model.union_stacks.values()]:
        for element in stack.elements:
            for h in element:
                put(h)
        count += stack.members
        place += stack.stride
    rest = [h for h in model.headers.values() if not h.metadata and h.index < 0]
    others = names_in([model.list("field_lists"), model.list("checksums"), model.list("field_aliases")])
    others |= names_in([d.get("primitives") or [] for d in model.list("deparsers")])
    plain = [h for h in rest if h.name not in others and not h.type.varbit and not h.union]
    model.big = [h for h in plain if h.type.bytes >= BIG_HEADER]
    for h in rest:
        if h not in model.big:
            put(h)
    model.phv_bytes = place
    for i, h in enumerate(model.big):
        put(h)
        h.big = i
    if place > MAX_PHV:
        raise unsupported(f"headers of {place} bytes together", None)
    model.validity_bytes = count
