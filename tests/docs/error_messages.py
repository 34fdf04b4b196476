# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The messages that netfold's code raises, from its syntax trees: templates in which `...` stands for a value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.house.imports import REPOSITORY

PACKAGES = (
    "controller",
    "evaluation",
    "netfold",
    "p4src",
    "protocol",
    "simulator",
    "softswitch/softswitch",
    "testbed",
    "topologies",
    "traffic",
)

INTERNAL = {
    "AnswerError": "a switch whose counters do not fit is reported as unreachable",
    "AssertionError": "a defect of netfold",
    "AttributeError": "a defect of the calling program, in Python's own words",
    "CompilerError": "a test of softswitch, which is skipped",
    "EOFError": "ends the planning process with its parent",
    "ForeignStateError": "the controller pushes the pipeline again",
    "InvalidPlanError": "a defect of a planner, by the validator",
    "NoOtherUserError": "softswitch compiles as its own user instead",
    "NoSolutionError": "a planner tries another way",
    "NotImplementedError": "a defect of netfold",
    "ShellEndedError": "becomes a NamespaceError, or is met while a network is taken down",
    "SlotsExhaustedError": "becomes a RefusedError",
    "StfError": "a failed test of a P4 program",
    "SwitchDiedError": "a test of softswitch",
    "UnknownEntityError": "the controller removes the entity",
    "WorkerLineError": "the agent ends the worker, which reports a JobFailedError",
}
"""Errors whose messages no user meets, each with the reason."""

P4RUNTIME = {
    "AlreadyExistsError",
    "InUseError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "StatusError",
    "invalid",
}
"""softswitch's answers to a controller: status codes of P4Runtime, which its specification explains."""

INTERNAL_PATHS = (
    "p4src/compiled",
    "protocol/generate.py",  # `make wire`
    "softswitch/softswitch/stf",
    "softswitch/softswitch/testing",
)

OTHERS = {
    "DistBackendError",
    "FileNotFoundError",
    "MemoryError",
    "ModuleNotFoundError",
    "OSError",
    "PermissionError",
    "TypeError",
    "ValueError",
}
"""Errors of Python and PyTorch that netfold raises with messages of its own."""

MAKERS = {"_error", "error", "refusal", "BadParameter", "Problem", "problem", "unsupported"}
"""Functions that make an error, or a part of its message, of a text."""


@dataclass(frozen=True, order=True)
class Raised:
    """A message template, and where it is raised."""

    template: str
    error: str
    place: str


def raised_messages() -> list[Raised]:
    """Each message that a user can meet. What repeats the text of another error has no template of its own."""
    trees = {path: ast.parse(path.read_text()) for path in _sources()}
    classes = {
        node.name: node
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    }
    found = set()
    for path, tree in trees.items():
        for node, texts in _constructed(tree):
            if (name := _name(node)) in INTERNAL or name in P4RUNTIME:
                continue
            if name in classes and _words(own := _own_message(classes[name])):
                templates = [own]
            elif name in classes or name in OTHERS or name in MAKERS:
                templates = [t for argument in _message_arguments(node) for t in _texts(argument, texts)]
            else:
                continue
            if name == "unsupported":
                templates = [f"unsupported construct: {t}" for t in templates]
            place = f"{path.relative_to(REPOSITORY)}:{node.lineno}"
            found.update(Raised(t, name, place) for t in templates if _words(t))
    return sorted(found)


def _sources() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            name = str(path.relative_to(REPOSITORY))
            if "_pb2" not in name and "/tests/" not in name and not name.startswith(INTERNAL_PATHS):
                yield path


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func).rsplit(".", 1)[-1]


Texts = dict[str, dict[int, str]]
"""Of a function: the texts that its variables are given, as templates, by line."""


def _constructed(tree: ast.AST, texts: Texts | None = None) -> Iterator[tuple[ast.Call, Texts]]:
    """Calls that may make an error, with the texts around them; `raise NotRootError` is one without arguments."""
    known = texts or {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _constructed(node, _texts_of(node))
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name):
            yield ast.copy_location(ast.Call(node.exc, [], []), node), known
        elif isinstance(node, ast.Call) and not _is_logged(node):
            yield node, known
        yield from _constructed(node, known)


def _texts_of(function: ast.AST) -> Texts:
    found: Texts = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, {})[node.lineno] = _template(node.value, {})
    return found


def _last(texts: dict[int, str], line: int) -> str:
    """The text that was given last before a line; `...` where that is none."""
    given = [number for number in texts if number < line]
    return texts[max(given)] if given and _words(texts[max(given)]) else "..."


def _is_logged(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and "log" in ast.unparse(call.func.value).lower()


def _message_arguments(call: ast.Call) -> list[ast.expr]:
    values = [*call.args, *(k.value for k in call.keywords)]
    return [v for v in values if not isinstance(v, ast.Constant) or " " in str(v.value)]


def _own_message(definition: ast.ClassDef) -> str:
    """What the class itself gives `super().__init__`, where it makes the message of its arguments."""
    for node in ast.walk(definition):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "super().__init__" and node.args:
            return _template(node.args[0], {})
    return ""


def _texts(node: ast.expr, known: Texts) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body, known)
        yield from _texts(node.orelse, known)
    else:
        yield _template(node, {name: _last(texts, node.lineno) for name, texts in known.items()})


def _template(node: ast.expr, known: dict[str, str]) -> str:
    match node:
        case ast.Constant(value=value):
            return value if isinstance(value, str) else "..."
        case ast.Name(id=name) | ast.FormattedValue(value=ast.Name(id=name)):
            return known.get(name, "...")
        case ast.JoinedStr(values=values):
            return "".join(_template(value, known) for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _template(left, known) + _template(right, known)
    return "..."


def _words(template: str) -> bool:
    return any(character.isalpha() for character in template)
