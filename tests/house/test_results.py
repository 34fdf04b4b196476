# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Figures are data: the tables of docs/results are what docs/results/data gives, and other pages have none of a run."""

from __future__ import annotations

import importlib.util
import re
import sys
from types import ModuleType

import pytest

from tests.house.imports import REPOSITORY

RESULTS = REPOSITORY / "docs/results"
REVISION = re.compile(r"(?:\bat|\bof|\bin|\() ?([0-9a-f]{7})\b")
LONGEST_CELL = 400


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results_tables", RESULTS / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where pydantic resolves the names of its fields
    spec.loader.exec_module(module)
    return module


def test_tables_are_what_the_data_gives(tables: ModuleType):
    assert tables.stale() == [], "run `make results`"


def test_all_data_is_shown(tables: ModuleType):
    assert tables.unused() == []


def test_each_plot_is_drawn(tables: ModuleType):
    plotted = [path.stem for path in (RESULTS / "data").glob("*.json") if tables.read(path.stem).plot]
    assert sorted(plotted) == sorted(path.stem for path in (RESULTS / "plots").glob("*.svg"))


def test_a_row_of_another_width_is_refused(tables: ModuleType):
    with pytest.raises(ValueError, match="has 1 cells; expected 2"):
        tables.ResultTable(
            title="", command="", revision="", machine="", conditions="", columns=("a", "b"), rows=(("1",),)
        )


@pytest.mark.parametrize("kind", ["tutorials", "how-to", "reference", "explanation"])
def test_pages_of_this_kind_have_no_diary(kind: str):
    """Neither revisions of runs, nor cells that are paragraphs."""
    found = []
    for page in sorted((REPOSITORY / "docs" / kind).glob("*.md")):
        text = page.read_text()
        found += [f"{page.name}: revision {r}" for r in REVISION.findall(text) if not r.isdigit()]
        for line in text.splitlines():
            if line.startswith("|"):
                found += [
                    f"{page.name}: {cell[:60]}..." for cell in line.split("|") if len(cell) > LONGEST_CELL
                ]
    assert found == []
