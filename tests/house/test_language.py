# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Names and sentences: what of the language's rules a machine can check. docs/reference/glossary.md has the terms."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house.imports import REPOSITORY

SOURCES = (".py", ".c", ".h", ".p4", ".proto", ".lua", ".sh")
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")
ACTOR_PRONOUNS = re.compile(
    r"(?<![a-z])(who|whoever|whom|somebody|anybody|everybody|nobody)(?![a-z])", re.IGNORECASE
)

PEOPLE_VERBS = {
    *("say", "says", "said", "tell", "tells", "told", "hear", "hears", "heard"),
    *("ask", "asks", "asked", "know", "knows", "knew", "wish", "wishes", "soon", "gone", "came"),
}
"""Parts of names that speak of a program as of a person, or give a value an adverb."""

SHARED_CLASS_NAMES = {
    "QueuePairs": "a job's record; what an adopted program announces of the same",
    "Code": "a status code; a text of C",
    "Command": "of the control socket; of an STF script",
    "Field": "of P4Info; of the translated program",
    "PortStatus": "C's structure; the same for users",
    "Profile": "of P4Info; its state",
    "Stats": "of the control socket; C's structure",
    "Table": "of P4Info; its state; its translation",
}
"""Names that several classes of one distribution may have, each with the reason."""


@cache
def files(*suffixes: str) -> list[Path]:
    """Tracked files with one of the suffixes, without generated ones and this one."""
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    paths = (REPOSITORY / name for name in done.stdout.split("\0") if name.endswith(suffixes))
    return [
        p
        for p in paths
        if p.is_file() and not p.is_symlink() and not GENERATED.search(p.name) and p != Path(__file__)
    ]


def is_product(path: Path) -> bool:
    """Not a test."""
    return "tests" not in path.relative_to(REPOSITORY).parts


def lines(*suffixes: str) -> Iterator[tuple[str, str]]:
    """Place (path:line) and text of every line of product and tests."""
    for path in files(*suffixes):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield f"{path.relative_to(REPOSITORY)}:{number}", line


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    """The product's Python."""
    return [(path, ast.parse(path.read_text())) for path in filter(is_product, files(".py"))]


@cache
def classes() -> list[tuple[str, ast.ClassDef]]:
    """Place and definition of every class of the product's Python."""
    return [
        (f"{path.relative_to(REPOSITORY)}:{node.lineno}", node)
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]


def identifiers(node: ast.AST) -> Iterator[str]:
    """Names that this node of the syntax tree binds or uses."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name


def test_actors_are_named():
    found = [f"{place}: {line.strip()}" for place, line in lines(*SOURCES) if ACTOR_PRONOUNS.search(line)]
    assert found == [], f"{len(found)} lines name an actor by a pronoun, not as worker, member, switch ..."


def test_programs_are_not_people():
    found = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}: {name}"
        for path, tree in trees()
        for node in ast.walk(tree)
        for name in identifiers(node)
        if PEOPLE_VERBS & set(name.lower().split("_"))
    ]
    assert found == [], (
        "names send, notify, receive, request, cache or time out, as in docs/reference/glossary.md"
    )


DISTRIBUTIONS = ("softswitch/", "examples/protocol/")
"""Folders whose names are their own: a package beside netfold, and the second implementation of the protocol."""


@pytest.mark.parametrize("folder", [*DISTRIBUTIONS, ""])
def test_no_two_classes_of_a_distribution_have_one_name(folder: str):
    places: dict[str, list[str]] = defaultdict(list)
    for place, node in classes():
        home = next((f for f in DISTRIBUTIONS if place.startswith(f)), "")
        if not node.name.startswith("_") and home == folder:
            places[node.name].append(place)
    double = {
        name: where for name, where in places.items() if len(where) > 1 and name not in SHARED_CLASS_NAMES
    }
    assert double == {}


def test_exceptions_end_in_error():
    bases = {node.name: [ast.unparse(b) for b in node.bases] for _, node in classes()}

    def is_error(name: str) -> bool:
        last = name.rsplit(".", maxsplit=1)[-1]
        return last.endswith(("Error", "Exception")) or any(map(is_error, bases.get(last, [])))

    wrong = [place for place, node in classes() if is_error(node.name) and not node.name.endswith("Error")]
    assert wrong == []


def test_every_sleep_has_its_reason():
    """A comment on the line of `sleep`, or on the line before: a program waits for the thing itself where it can."""
    for path in filter(is_product, files(".py")):
        text = path.read_text().splitlines()
        for before, line in itertools.pairwise(text):
            if re.search(r"\btime\.sleep\(", line):
                assert "#" in line or before.lstrip().startswith("#"), f"{path}: {line.strip()}"


def test_the_glossary_defines_each_term_once_and_in_order():
    page = (REPOSITORY / "docs/reference/glossary.md").read_text()
    entries = re.findall(r"^## (.+)$", page, re.MULTILINE)
    terms = [term for entry in entries for term in entry.split(", ")]
    assert len(terms) > 100
    assert sorted(term for term, count in Counter(terms).items() if count > 1) == []
    assert entries == sorted(entries, key=str.lower)


REPLACED_TERMS = {
    "rail": "limit, saturated",
    "lap": "stripe",
    "stranger": "newcomer",
    "foreign load": "cross traffic",
    "foreign traffic": "cross traffic",
    "way down": "result tree",
    "way up": "upstream path",
    "under way": "in flight",
    "sent again": "retransmitted",
    "goes again": "is retransmitted",
    "worn": "unusable",
    "hears": "is notified",
    "patience": "timeout",
    "in vain": "without result",
}
"""Words of prose, each with the glossary's term for it. A stranger is a newcomer in a job, and may be one elsewhere."""
WHERE_ALLOWED = {
    "glossary.md": {"sent again"},
    "jobs.md": {"stranger"},
    "security.md": {"stranger"},
    "off-path-attackers.md": {"stranger"},
}
PAGE_KINDS = ("tutorials", "how-to", "reference", "explanation", "results")


def prose(kind: str) -> Iterator[tuple[Path, str]]:
    """The lines of the pages of a kind, without code and the targets of links."""
    for page in sorted((REPOSITORY / "docs" / kind).glob("*.md")):
        text = re.sub(r"^ *(`{3,}).*?^ *\1 *$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for line in re.sub(r"\]\([^)]*\)|`[^`\n]*`", "]", text).splitlines():
            yield page, line.strip()


@pytest.mark.parametrize("kind", [*PAGE_KINDS, "decisions"])
def test_pages_name_actors(kind: str):
    found = [f"{page.name}: {line}" for page, line in prose(kind) if ACTOR_PRONOUNS.search(line)]
    assert found == [], f"{len(found)} lines name an actor by a pronoun, not as worker, member, switch ..."


@pytest.mark.parametrize("kind", PAGE_KINDS)
def test_pages_have_the_glossarys_terms(kind: str):
    found = [
        f"{page.name}: '{term}', expected {better}: {line}"
        for page, line in prose(kind)
        for term, better in REPLACED_TERMS.items()
        if term not in WHERE_ALLOWED.get(page.name, set())
        and re.search(rf"\b{term}s?\b", line, re.IGNORECASE)
    ]
    assert found == []
