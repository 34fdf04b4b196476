# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Each message that a user can meet has an entry in docs/reference/messages.md, and each entry is of a message."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.docs.error_messages import PACKAGES, Raised, raised_messages
from tests.house.imports import REPOSITORY

PAGE = REPOSITORY / "docs/reference/messages.md"
MIN_WORDS = 2
"""A pattern with fewer words of its own covers only the template that is equal to it."""


@cache
def rows() -> list[tuple[str, str]]:
    """Pattern and remedy of each row."""
    return re.findall(r"^\| `([^|]+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE)


def entries() -> dict[str, str]:
    return dict(rows())


@cache
def raised() -> tuple[Raised, ...]:
    return tuple(raised_messages())


@cache
def plain(template: str) -> str:
    """As the page can have it: one line without backticks; adjacent values are one."""
    return re.sub(r"\.{4,}", "...", " ".join(template.replace("`", "").split()))


@cache
def expression(pattern: str) -> re.Pattern[str]:
    """Of the templates that the pattern covers."""
    is_specific = len(re.findall(r"[\w-]{2,}", pattern.replace("...", " "))) >= MIN_WORDS
    pieces = [re.escape(piece) for piece in pattern.split("...")]
    return re.compile(".*".join(pieces) if is_specific else re.escape(pattern))


def covers(pattern: str, template: str) -> bool:
    return expression(pattern).fullmatch(template) is not None


def test_each_message_has_an_entry():
    missing = [
        f"{m.place}: {m.error}: {plain(m.template)}"
        for m in raised()
        if not any(covers(pattern, plain(m.template)) for pattern in entries())
    ]
    assert missing == [], "messages without an entry in docs/reference/messages.md"


def test_each_entry_is_of_a_message():
    stale = [p for p in entries() if not any(covers(p, plain(m.template)) for m in raised())]
    assert stale == [], "entries of docs/reference/messages.md that no code raises"


def test_each_message_has_one_entry():
    patterns = [pattern for pattern, _ in rows()]
    assert [p for p in set(patterns) if patterns.count(p) > 1] == []


def test_no_entry_is_a_catch_all():
    """An entry that covers a twentieth of all messages says nothing of any."""
    wide = {p: sum(covers(p, plain(m.template)) for m in raised()) for p in entries()}
    assert {
        p: n for p, n in wide.items() if n > len(raised()) / 20 and p != "unsupported construct: ..."
    } == {}


@pytest.mark.parametrize(
    ("pattern", "template", "expected"),
    [
        ("there is no job '...'", "there is no job '...'", True),
        ("job '...': option ...", "job '...': option '...' is unknown; there are ...", True),
        ("job '...': option ...", "job '...': scheme '...' is unknown; there are ...", False),
        ("switch ...", "switch ...: ...", False),
        ("...: ...", "...: it is empty", False),
    ],
)
def test_a_pattern_covers_what_its_own_words_name(pattern: str, template: str, expected: bool):
    assert covers(pattern, template) is expected


def test_messages_are_found_in_all_packages():
    found = {m.place.partition("/")[0] for m in raised()}
    assert {"controller", "simulator", "softswitch", "testbed", "topologies", "traffic"} <= found
    assert len({m.template for m in raised()}) > 400


def test_options_that_entries_name_exist():
    sources = "".join(p.read_text() for f in PACKAGES for p in (REPOSITORY / f).rglob("*.py"))
    named = set(re.findall(r"--[a-z][a-z0-9-]+", "".join(entries().values())))
    missing = {o for o in named if o not in sources and f"{o[2:].replace('-', '_')}: " not in sources}
    assert missing == set()
