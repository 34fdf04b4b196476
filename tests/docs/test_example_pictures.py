# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The pictures of examples/README.md are those that `make example-pictures` draws."""

from __future__ import annotations

import re

import matplotlib
import pytest

from examples.pictures.draw import DRAWINGS, FOLDER, picture
from tests.house.imports import REPOSITORY

MAX_BYTES = 60_000
SHOWN = re.compile(r"^!\[(.+)\]\((\S+)\)$", re.MULTILINE)


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
