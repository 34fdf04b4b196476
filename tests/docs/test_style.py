# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sentences of tutorials, guides, reference pages and explanations have at most 20 words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.imports import REPOSITORY

MAX_WORDS = 20
PAGES = sorted(
    [
        REPOSITORY / "README.md",
        REPOSITORY / "CONTRIBUTING.md",
        REPOSITORY / "docs/index.md",
        *(
            page
            for kind in ("tutorials", "how-to", "reference", "explanation")
            for page in (REPOSITORY / "docs" / kind).glob("*.md")
        ),
    ]
)
FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
NO_PROSE = re.compile(r"^ *(\||#|<!--|!\[).*$", re.MULTILINE)
LIST_ITEM = re.compile(r"^\s*([-*]|\d+\.) ", re.MULTILINE)


def sentences(text: str) -> Iterator[str]:
    """Yields the sentences of a page's prose. A span of code is one word; a link is its text."""
    prose = LIST_ITEM.sub("\n\n", NO_PROSE.sub("", FENCE.sub("", text)))
    for paragraph in re.split(r"\n\s*\n", prose):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
        plain = re.sub(r"`[^`]*`", "code", plain).replace("*", "")
        yield from re.split(r"(?<=[.!?])\s+", plain)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_sentences_are_short(page: Path):
    long = [s for s in sentences(page.read_text()) if len(re.findall(r"[\w'-]+", s)) > MAX_WORDS]
    assert long == []


def test_sentences_are_found():
    text = "# No\n\n- One two, `three four`. Five:\n  six!\n\n| no |\n\n```bash\nno\n```\nSeven [eight](x)?"
    assert [s for s in sentences(text) if s] == ["One two, code.", "Five: six!", "Seven eight?"]
