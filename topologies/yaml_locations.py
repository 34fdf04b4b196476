# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads YAML (and JSON) with the line of every value, for error messages."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml

from netfold.topologies.fabric import FabricError
from netfold.topologies.faults import Place

MAX_BYTES = 4 << 20
MAX_VALUES = 200_000
MAX_DEPTH = 64
"""Maximum depth of nested values: libyaml composes them by recursion, and ends the process where its stack ends."""
MAX_DIGITS = 64
"""Characters of a number: the time that Python takes for its digits grows with their square."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where PyYAML has it: six times as fast."""


@dataclass(frozen=True)
class Problem:
    """An error at a line and column, counted from 1."""

    line: int
    column: int
    message: str


class SpecError(FabricError):
    """An invalid spec; `problems` have line, column, the error and the expected value."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = tuple(sorted(problems, key=lambda p: (p.line, p.column)))
        super().__init__("\n".join(f"{file}:{p.line}:{p.column}: {p.message}" for p in self.problems))


@dataclass(frozen=True)
class Document:
    """A file's values and their positions (line, column); of an entry of a mapping, that of its key."""

    file: str
    value: Any
    marks: dict[Place, tuple[int, int]]

    def problem(self, place: Place, message: str) -> Problem:
        """A problem at `place`, or at the nearest enclosing value in the file."""
        while place and place not in self.marks:
            place = place[:-1]
        line, column = self.marks.get(place, (1, 1))
        return Problem(line, column, message)

    def error(self, place: Place, message: str) -> SpecError:
        return SpecError(self.file, [self.problem(place, message)])

    def with_lines(
        self, error: FabricError, place: Callable[[Place], Place] = lambda place: place
    ) -> SpecError:
        """The faults of the fabric that this file describes, with their lines. `place`: the place in the file of a
        place in the fabric."""
        problems = []
        for fault in error.faults:
            message = fault.message
            if fault.earlier is not None:
                message += f"; the first is in line {self.problem(place(fault.earlier), '').line}"
            problems.append(self.problem(place(fault.place), message))
        return SpecError(self.file, problems)


def read_document(path: Path) -> Document:
    """Reads a YAML or JSON file. Raises SpecError for syntax errors, repeated keys and too large files."""
    return parse_document(read_text(path), str(path))


def read_text(path: Path) -> str:
    """The text of a YAML or JSON file, as `parse_document` takes it. Raises FabricError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FabricError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise SpecError(str(path), [Problem(1, 1, f"{len(data)} bytes; expected at most {MAX_BYTES}")])
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SpecError(str(path), [Problem(line, 1, "not UTF-8 text")]) from error
    if path.suffix == ".json":
        return text.replace("\t", " ")  # JSON allows tabs as indentation, YAML does not
    return text


def parse_document(text: str, file: str) -> Document:
    try:
        _check_depth(text, file)
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise SpecError(file, [Problem(1, 1, "the file is empty")])
        reader = _Reader(file, loader)
        return Document(file, reader.read(node, ()), reader.marks)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise SpecError(file, [Problem(line, column, f"not YAML: {error.problem}")]) from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise SpecError(file, [Problem(line, 1, f"not YAML: {error.reason}")]) from error


def _check_depth(text: str, file: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            line = event.start_mark.line + 1 if event.start_mark is not None else 1
            raise SpecError(file, [Problem(line, 1, f"values are nested more than {MAX_DEPTH} deep")])


_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})


class _Reader:
    """Converts nodes to plain values and records their positions."""

    def __init__(self, file: str, loader: yaml.SafeLoader) -> None:
        self.marks: dict[Place, tuple[int, int]] = {}
        self._file = file
        self._loader = loader

    def read(self, node: yaml.Node, place: Place) -> Any:
        if len(self.marks) >= MAX_VALUES:
            self._fail(node, f"more than {MAX_VALUES} values")
        if len(place) > MAX_DEPTH:  # of a value that contains itself
            self._fail(node, f"values are nested more than {MAX_DEPTH} deep")
        self.marks[place] = _mark(node)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(child, (*place, i)) for i, child in enumerate(node.value)]
        if node.tag in _NUMBERS and len(node.value) > MAX_DIGITS:
            self._fail(node, f"a number of {len(node.value)} characters; expected at most {MAX_DIGITS}")
        try:
            return self._loader.construct_object(node, deep=True)
        except ValueError as error:  # for example a date in month 13
            self._fail(node, f"not YAML: {error}")
        except (
            LookupError,
            AttributeError,
        ):  # how PyYAML fails at `!!int` without digits, `!!bool 1`, `!!timestamp x`
            self._fail(node, f"not YAML: '{node.value}' is no {node.tag.rpartition(':')[2]}")

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[Hashable, Any]:
        result: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._fail(key_node, "expected a plain name as key")
            key = key_node.value
            if key in result:
                first = self.marks[(*place, key)][0]
                self._fail(key_node, f"'{key}' is given twice; the first is in line {first}")
            result[key] = self.read(value_node, (*place, key))
            self.marks[(*place, key)] = _mark(key_node)
        return result

    def _fail(self, node: yaml.Node, message: str) -> NoReturn:
        raise SpecError(self._file, [Problem(*_mark(node), message)])


def _mark(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
