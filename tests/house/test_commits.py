# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Subjects of commits since the rule of CONTRIBUTING.md: `area: imperative`, one change, at most 72 characters."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.house.imports import REPOSITORY

BASE = "1129aa50df741cb92aa5e9583fff21f2a5e123db"
"""The last commit before the rule."""
MERGED = {"ccf7f1bfd8f06fa5b6fa864e877e51f32b03299d"}
"""Commits that were merged before this test was. Add none: mend the subject before the merge."""
MAX_CHARACTERS = 72
AREA = re.compile(r"(C|[a-z0-9_./-]+)(, [a-z0-9_./-]+)*: \S")
NOT_IMPERATIVE = re.compile(
    r"[^:]+: \w+(?<!bring)(?<!string)ing\b|[^:]+: (added|fixed|changed|removed|adds|fixes|removes)\b"
)


def faults(subject: str) -> Iterator[str]:
    if len(subject) > MAX_CHARACTERS:
        yield f"{len(subject)} characters, expected at most {MAX_CHARACTERS}"
    if ";" in subject:
        yield "a semicolon, expected one change"
    if not AREA.match(subject):
        yield "no area, expected `area: imperative`"
    elif NOT_IMPERATIVE.match(subject):
        yield "no imperative, expected as `area: add`"
    if subject.endswith("."):
        yield "a period at the end"


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_subjects_since_the_rule_follow_it():
    if git("merge-base", "--is-ancestor", BASE, "HEAD").returncode != 0:
        pytest.skip(f"no git history back to {BASE[:7]} here, so no commit is checked")
    log = git("log", "--no-merges", "--format=%H %s", f"{BASE}..HEAD").stdout.splitlines()
    found = {line: list(faults(line.partition(" ")[2])) for line in log if line.split()[0] not in MERGED}
    assert {line: why for line, why in found.items() if why} == {}


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("controller: retry the queue when elements fail", None),
        ("docs/reference, examples: name all schemes", None),
        ("Reading it again: whether a port merges is the engine's alone", "no area"),
        ("The queue is retried when elements fail", "no area"),
        ("controller: retry the queue; docs: name all schemes", "a semicolon"),
        ("controller: " + "retry " * 12, "83 characters"),
        ("controller: retrying the queue", "no imperative"),
        ("controller: fixed the queue", "no imperative"),
        ("controller: retry the queue.", "a period"),
    ],
)
def test_a_subject_that_breaks_the_rule_is_found(subject: str, fault: str | None):
    assert [f for f in faults(subject.strip()) if not (fault and f.startswith(fault))] == []
    assert bool(list(faults(subject.strip()))) == (fault is not None)
