# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Files of the repository become pages of the site where a page links to them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="SKIPPED: sphinx is not installed: make docs")

from tests.house.imports import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "docs/_extensions"))

from repository_pages import RepositoryPages


@pytest.fixture
def pages(tmp_path: Path) -> RepositoryPages:
    files = {
        "site/how-to/a.md": "[b](b.md), [ways](../../examples/README.md#ways), [no](https://x.org)\n",
        "site/how-to/b.md": "```\n[fenced](../../other.py)\n```\n",
        "examples/README.md": "# Examples\n\n[a](../site/how-to/a.md#x), [one](one.py), [specs](../specs)\n"
        "\n```python\n1\n```\n",
        "examples/one.py": "print(1)\n",
        "examples/plots/README.md": "![a plot](one.svg)\n\n```\n![fenced](two.svg)\n```\n",
        "examples/plots/one.svg": "<svg/>",
        "specs/s.yaml": "a: 1\n",
        "other.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return RepositoryPages(tmp_path / "site")


def test_links_are_followed(pages: RepositoryPages):
    found = pages.all_linked(pages.docs.rglob("*.md"))
    assert [f.relative_to(pages.root).as_posix() for f in found] == [
        "examples/README.md",
        "examples/one.py",
        "specs",
        "specs/s.yaml",
    ]


def test_links_of_markdown_lead_to_pages(pages: RepositoryPages):
    text = pages.markdown(pages.root / "examples/README.md", lambda code, language: f"[{language}: {code}]")
    assert '<a href="../../how-to/a.html#x">a</a>' in text
    assert '<a href="one.py.html">one</a>' in text
    assert '<a href="../specs.html">specs</a>' in text
    assert "[python: 1\n]" in text


def test_the_way_from_a_page(pages: RepositoryPages):
    assert pages.link("how-to/a", pages.root / "examples/one.py") == "../repository/examples/one.py.html"


def test_pictures_are_copied_to_where_the_page_looks_for_them(pages: RepositoryPages, tmp_path: Path):
    page = pages.root / "examples/plots/README.md"
    (picture,) = pages.pictures_of(page)
    assert 'src="one.svg"' in pages.markdown(page, lambda code, language: code)
    pages.copy_picture(picture, tmp_path / "html")
    shown = (tmp_path / "html" / pages.page(page)).parent / "one.svg"
    assert shown.read_text() == "<svg/>"
