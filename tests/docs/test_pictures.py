# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Each diagram of a page has its picture, and each picture a diagram. The pictures of examples/README.md are those that
`make example-pictures` draws."""

from __future__ import annotations

import hashlib
import re

import matplotlib
import pytest

from examples.pictures.draw import DRAWINGS, FOLDER, picture
from tests.house.imports import REPOSITORY

DOCS = REPOSITORY / "docs"
FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAX_BYTES = 60_000
SHOWN = re.compile(r"^!\[(.+)\]\((\S+)\)$", re.MULTILINE)


def test_diagrams_are_those_of_the_pages():
    expected = {
        f"{page.stem}-{hashlib.sha256(source.strip().encode()).hexdigest()[:8]}.svg"
        for page in DOCS.rglob("*.md")
        for source in FENCE.findall(page.read_text())
    }
    assert len(expected) >= 3
    assert {p.name for p in (DOCS / "images/diagrams").iterdir()} == expected, "make diagrams"


def test_diagrams_load_nothing():
    for diagram in (DOCS / "images/diagrams").iterdir():
        assert re.search(r"(?:href|src)=.https?:|@import|url\(.?https?:", diagram.read_text()) is None


def test_the_page_shows_each_picture():
    page = REPOSITORY / "examples/README.md"
    shown = {(page.parent / target).resolve(): words for words, target in SHOWN.findall(page.read_text())}
    assert all(path.is_file() and len(words.split()) >= 5 for path, words in shown.items())
    own = {path for path in shown if path.parent == FOLDER}
    assert own == set(FOLDER.glob("*.svg")) == {FOLDER / f"{name}.svg" for name in DRAWINGS}


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_picture_is_what_its_program_and_data_give(name: str):
    committed = (FOLDER / f"{name}.svg").read_text()
    assert len(committed) < MAX_BYTES
    if f"Matplotlib v{matplotlib.__version__}" not in committed:
        pytest.skip(f"SKIPPED: matplotlib {matplotlib.__version__} is not the one that drew the pictures")
    assert committed == picture(name), "stale: make example-pictures"
