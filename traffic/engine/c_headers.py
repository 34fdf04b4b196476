# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Structures and functions of our C headers for ctypes, read from the headers, so that Python does not repeat them.

Understands what these headers contain: members of scalar types, structures, unions, enums and pointers, arrays with a
constant length, and exported functions (NF_API, NP_API, SF_API). tests/house/test_structs.py compares it with the
compiler."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

_COMMENT = re.compile(r"/\*.*?\*/|^\s*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
_STRUCT = re.compile(r"^(struct|union) (\w+) \{(.*?)^\}", re.DOTALL | re.MULTILINE)
_CONSTANT = re.compile(r"\b([A-Z]\w*)\s*=\s*(\d+)\s*[,}\n]")
_FUNCTION = re.compile(r"\b[A-Z]+_API\s+([^;(]*?[\s*])(\w+)\(([^)]*)\)\s*;")
_MEMBER = re.compile(r"(\**)\s*(\w+)\s*((?:\[\w+\])*)\s*$")
_SCALARS: dict[str, Any] = {
    "char": ctypes.c_char,
    "int": ctypes.c_int,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "np_time": ctypes.c_int64,
    **{
        f"{sign}int{bits}_t": getattr(ctypes, f"c_{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}


class Headers:
    """Parsed headers. A structure that another one contains has to be parsed with it."""

    def __init__(self, *paths: Path) -> None:
        self._text = "\n".join(_COMMENT.sub("", path.read_text()) for path in paths)
        self._structures: dict[str, Any] = {}

    def fields(self, structure: str, **known: type[ctypes.Structure]) -> tuple[tuple[str, Any], ...]:
        """Returns the `_fields_` of a structure. `known`: classes of the structures that it contains."""
        return tuple(self._members(self._bodies[structure], known))

    def declare(self, code: ctypes.CDLL, *prefixes: str, **known: type[ctypes.Structure]) -> None:
        """Declares the exported functions whose names start with a prefix: their results and arguments. `known`: as
        for `fields`."""
        for result, name, arguments in _FUNCTION.findall(self._text):
            if name.startswith(prefixes):
                function = getattr(code, name)
                function.restype = self._type(result, known)
                parameters = filter(
                    None, (part.strip().removesuffix("void") for part in arguments.split(","))
                )
                function.argtypes = [self._type(parameter, known) for parameter in parameters]

    @cached_property
    def _bodies(self) -> dict[str, str]:
        return {name: " ".join(body.split()) for _, name, body in _STRUCT.findall(self._text)}

    @cached_property
    def _unions(self) -> set[str]:
        return {name for keyword, name, _ in _STRUCT.findall(self._text) if keyword == "union"}

    @cached_property
    def _constants(self) -> dict[str, int]:
        return {name: int(value) for name, value in _CONSTANT.findall(self._text)}

    def _members(self, body: str, known: Mapping[str, type[ctypes.Structure]]) -> Iterator[tuple[str, Any]]:
        for declaration in filter(None, (part.strip() for part in body.split(";"))):
            first, *others = declaration.split(",")
            head = _MEMBER.search(first)
            assert head, declaration
            base = first[: head.start()].strip()
            for declarator in (head[0], *others):
                member = _MEMBER.search(declarator)
                assert member, declaration
                kind = ctypes.c_void_p if member[1] else self._type(base, known)
                for length in reversed(re.findall(r"\[(\w+)\]", member[3])):
                    kind = kind * (int(length) if length.isdigit() else self._constants[length])
                yield member[2], kind

    def _type(self, declaration: str, known: Mapping[str, type[ctypes.Structure]]) -> Any:
        """Returns the ctypes type of a declaration without or with a name, as in a parameter."""
        if "*" in declaration:
            return ctypes.c_char_p if declaration.split()[:2] == ["const", "char"] else ctypes.c_void_p
        words = [word for word in declaration.split() if word != "const"]
        if words[0] == "void":
            return None
        if words[0] == "enum":
            return ctypes.c_int
        if words[0] in ("struct", "union"):
            return known.get(words[1]) or self._structure(words[1])
        return _SCALARS[words[0]]

    def _structure(self, name: str) -> Any:
        if name not in self._structures:
            base = ctypes.Union if name in self._unions else ctypes.Structure
            self._structures[name] = type(name, (base,), {"_fields_": self.fields(name)})
        return self._structures[name]
