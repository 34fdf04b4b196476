# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A decision is found by its number: one for each, in its file's name, its heading and the list."""

from __future__ import annotations

import re

from tests.house.imports import REPOSITORY

FOLDER = REPOSITORY / "docs/decisions"


def test_each_decision_has_a_number_of_its_own_and_is_listed():
    listed = re.findall(r"^\| \[(\d{4})\]\(([^)]+)\)", (FOLDER / "README.md").read_text(), re.MULTILINE)
    files = sorted(file.name for file in FOLDER.glob("0*.md"))
    numbers = [name[:4] for name in files]
    assert len(set(numbers)) == len(numbers)
    assert sorted(listed) == list(zip(numbers, files, strict=True))
    for name in files:
        assert re.search(rf"^# {name[:4]}: ", (FOLDER / name).read_text(), re.MULTILINE), name
