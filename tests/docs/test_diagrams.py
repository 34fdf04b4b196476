# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Each diagram of a page has its picture, and each picture a diagram."""

from __future__ import annotations

import hashlib
import re

from tests.house.imports import REPOSITORY

DOCS = REPOSITORY / "docs"
FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_pictures_are_those_of_the_pages():
    expected = {
        f"{page.stem}-{hashlib.sha256(source.strip().encode()).hexdigest()[:8]}.svg"
        for page in DOCS.rglob("*.md")
        for source in FENCE.findall(page.read_text())
    }
    assert len(expected) >= 3
    assert {p.name for p in (DOCS / "images/diagrams").iterdir()} == expected, "make diagrams"


def test_pictures_load_nothing():
    for picture in (DOCS / "images/diagrams").iterdir():
        assert re.search(r"(?:href|src)=.https?:|@import|url\(.?https?:", picture.read_text()) is None
