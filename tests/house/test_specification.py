# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/protocol.md is a specification: its rules are numbered without gaps, each says what MUST be, and each
is held by tests that exist."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

import pytest

from tests.house.imports import REPOSITORY

PAGE = REPOSITORY / "docs/reference/protocol.md"
RULE = re.compile(r"^\*\*([A-Z])(\d+)\.\*\* (.*?)(?=\n\n|\n\*\*[A-Z]\d+\.\*\*)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| ([A-Z]\d+) \| (.*) \|$", re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


@cache
def rules() -> dict[str, str]:
    return {letter + number: text for letter, number, text in RULE.findall(PAGE.read_text())}


def held_by() -> dict[str, list[tuple[str, str]]]:
    return {rule: TEST.findall(cell) for rule, cell in ROW.findall(PAGE.read_text().partition("## 10. ")[2])}


def test_rules_are_numbered_without_gaps():
    numbers = defaultdict(list)
    for rule in rules():
        numbers[rule[0]].append(int(rule[1:]))
    assert len(rules()) > 80
    assert {letter: sorted(found) for letter, found in numbers.items()} == {
        letter: list(range(1, len(found) + 1)) for letter, found in numbers.items()
    }


@pytest.mark.parametrize("rule", rules())
def test_a_rule_says_what_must_be(rule: str):
    assert re.search(r"\b(MUST|MAY)\b", rules()[rule])


def test_each_rule_is_held_by_a_test():
    assert {rule: bool(found) for rule, found in held_by().items()} == dict.fromkeys(rules(), True)


@pytest.mark.parametrize("rule", rules())
def test_the_tests_of_a_rule_exist(rule: str):
    missing = [
        f"{path}::{name}"
        for path, name in held_by()[rule]
        if not re.search(
            rf"^\s*(async )?def {name}\(",
            (REPOSITORY / "tests" / path).read_text() if (REPOSITORY / "tests" / path).exists() else "",
            re.MULTILINE,
        )
    ]
    assert missing == []
