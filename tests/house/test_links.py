# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Every link of a page, and every page that code names, exists."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house.imports import REPOSITORY

FENCE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#:]*)(?:#([^)\s]*))?\)")
NAMED_PAGE = re.compile(r"(?<![\w/.:-])docs/[\w/.-]+\.md\b")

FOREIGN = "docs/JSON_format.md"  # of p4lang's behavioral-model


@cache
def tracked() -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    paths = (REPOSITORY / name for name in done.stdout.split("\0") if name)
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def pages() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".md"]


def anchors(page: Path) -> set[str]:
    """Anchors of the page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ +(.*?) *$", FENCE.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def broken_links(page: Path) -> Iterator[str]:
    for target, anchor in LINK.findall(FENCE.sub("", page.read_text())):
        path = (page.parent / target).resolve() if target else page
        if not path.exists():
            yield target
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield f"{target}#{anchor}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_of_a_page_lead_somewhere(page: Path):
    assert list(broken_links(page)) == []


def test_pages_that_files_name_exist():
    missing = []
    for path in (path for path in tracked() if path != Path(__file__)):
        name = path.relative_to(REPOSITORY).as_posix()
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        text = text.replace(FOREIGN, "")
        found = set(NAMED_PAGE.findall(text))
        missing += [f"{name}: {page}" for page in sorted(found) if not (REPOSITORY / page).exists()]
    assert missing == [], "pages that do not exist"
