# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""P4Data: values of P4 types on the wire (specification, "Representation of Arbitrary P4 Types")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from finsy.proto import p4d, p4t

from softswitch.p4runtime.schema import WIDTH_MAX
from softswitch.p4runtime.status import Code, StatusError, invalid
from softswitch.state import values

T = TypeVar("T")


class P4DataCodec:
    """Encodes and decodes by a program's type specifications."""

    def __init__(self, types: p4t.P4TypeInfo) -> None:
        self._types = types

    def check(self, spec: p4t.P4DataTypeSpec) -> None:
        """StatusError when the specification names a type that P4Info does not have, or one that is not supported."""
        kind = spec.WhichOneof("type_spec")
        if kind == "struct":
            for member in _lookup(self._types.structs, spec.struct.name).members:
                self.check(member.type_spec)
        elif kind == "tuple":
            for part in spec.tuple.members:
                self.check(part)
        elif kind == "header":
            _lookup(self._types.headers, spec.header.name)
        elif kind == "serializable_enum":
            _lookup(self._types.serializable_enums, spec.serializable_enum.name)
        elif kind == "new_type":
            _lookup(self._types.new_types, spec.new_type.name)
            self.check(self._original(spec.new_type.name))
        elif kind == "bitstring":
            bits = spec.bitstring
            if not 0 < max(bits.bit.bitwidth, bits.int.bitwidth) <= WIDTH_MAX:
                raise _unsupported(bits.WhichOneof("type_spec"))
        elif kind != "bool":
            raise _unsupported(kind)

    def encode_int(self, spec: p4t.P4DataTypeSpec, value: int) -> p4d.P4Data:
        """One number, given as its bits. Raises StatusError (UNIMPLEMENTED) for a type that is not one number."""
        kind = spec.WhichOneof("type_spec")
        if kind == "bitstring":
            return p4d.P4Data(bitstring=_encode_bits(spec.bitstring, value))
        if kind == "bool":
            return p4d.P4Data(bool=bool(value))
        if kind == "serializable_enum":
            return p4d.P4Data(enum_value=values.encode(value))
        if kind == "new_type":
            return self.encode_int(self._original(spec.new_type.name), value)
        raise _unsupported(kind)

    def decode_int(self, spec: p4t.P4DataTypeSpec, data: p4d.P4Data, what: str) -> int:
        """The bits of the number in `data`. Raises StatusError when it is of another type or does not fit."""
        kind = spec.WhichOneof("type_spec")
        if kind == "new_type":
            return self.decode_int(self._original(spec.new_type.name), data, what)
        got = data.WhichOneof("data")
        if kind == "bitstring":
            _require(got, "bitstring", what)
            bits = spec.bitstring
            if bits.WhichOneof("type_spec") == "int":
                width = bits.int.bitwidth
                return values.decode_signed(data.bitstring, width, what) & (1 << width) - 1
            return values.decode(data.bitstring, bits.bit.bitwidth, what)
        if kind == "bool":
            _require(got, "bool", what)
            return int(data.bool)
        if kind == "serializable_enum":
            _require(got, "enum_value", what)
            width = self._types.serializable_enums[spec.serializable_enum.name].underlying_type.bitwidth
            return values.decode(data.enum_value, width, what)
        raise _unsupported(kind)

    def encode_fields(self, spec: p4t.P4DataTypeSpec, fields: Sequence[bytes]) -> p4d.P4Data:
        """A digest's value: `fields` are the leaves of the type, in the order of its declaration."""
        leaves = iter(fields)
        data = self._encode_next(spec, leaves)
        if next(leaves, None) is not None:
            raise StatusError(Code.INTERNAL, f"a digest has {len(fields)} fields, more than its P4Info type")
        return data

    def _encode_next(self, spec: p4t.P4DataTypeSpec, leaves: Iterator[bytes]) -> p4d.P4Data:
        kind = spec.WhichOneof("type_spec")
        data = p4d.P4Data()
        if kind == "struct":
            members = [m.type_spec for m in self._types.structs[spec.struct.name].members]
            data.struct.members.extend(self._encode_next(m, leaves) for m in members)
        elif kind == "tuple":
            data.tuple.members.extend(self._encode_next(m, leaves) for m in spec.tuple.members)
        elif kind == "header":
            data.header.is_valid = True
            for _ in self._types.headers[spec.header.name].members:
                data.header.bitstrings.append(_leaf(leaves))
        elif kind == "new_type":
            return self._encode_next(self._original(spec.new_type.name), leaves)
        elif kind == "bool":
            data.bool = any(_leaf(leaves))
        elif kind == "serializable_enum":
            data.enum_value = _leaf(leaves)
        elif kind == "bitstring":
            data.bitstring = _encode_bits(spec.bitstring, int.from_bytes(_leaf(leaves), "big"))
        else:
            raise _unsupported(kind)
        return data

    def _original(self, name: str) -> p4t.P4DataTypeSpec:
        new_type = self._types.new_types[name]
        if new_type.HasField("translated_type"):
            width = new_type.translated_type.sdn_bitwidth
            return p4t.P4DataTypeSpec(
                bitstring=p4t.P4BitstringLikeTypeSpec(bit=p4t.P4BitTypeSpec(bitwidth=width))
            )
        return new_type.original_type


def _encode_bits(spec: p4t.P4BitstringLikeTypeSpec, bits: int) -> bytes:
    if spec.WhichOneof("type_spec") != "int":
        return values.encode(bits)
    width = spec.int.bitwidth
    return values.encode_signed(bits - (1 << width) if bits >> width - 1 & 1 else bits)


def _lookup(types: Mapping[str, T], name: str) -> T:
    if name not in types:
        raise invalid(f"P4Info has no type {name!r}")
    return types[name]


def _leaf(leaves: Iterator[bytes]) -> bytes:
    leaf = next(leaves, None)
    if leaf is None:
        raise StatusError(Code.INTERNAL, "a digest has fewer fields than its P4Info type")
    return leaf


def _require(got: str | None, want: str, what: str) -> None:
    if got != want:
        raise invalid(f"{what}: the data is a {got}, but its type is a {want}")


def _unsupported(kind: str | None) -> StatusError:
    return StatusError(Code.UNIMPLEMENTED, f"data of the type {kind} is not supported")
