# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Notebooks of the tutorials have stored outputs, of the code that they show, and a run gives the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.notebooks import (
    PICTURE,
    code_cells,
    code_digest,
    differences,
    read,
    run,
    shown,
    stored_digest,
    write,
)
from tests.docs.test_blocks import RENEW
from tests.house.imports import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "docs/tutorials").glob("*.ipynb"))
MAX_BYTES = 200_000
NOTEBOOK = """{"cells": [{"cell_type": "code", "id": "a", "metadata": {}, "execution_count": null, "outputs": [],
 "source": "import matplotlib.pyplot as plt\\nplt.plot([1, 2])\\nprint(1 + 1)"}],
 "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
"""


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("j")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(folder))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored(path: Path):
    notebook = read(path)
    assert stored_digest(notebook) == code_digest(notebook), "make docs-outputs renews its outputs"
    assert path.stat().st_size <= MAX_BYTES
    pictures = [cell for cell in code_cells(notebook) if PICTURE in shown(cell)]
    assert pictures
    assert [cell.id for cell in pictures if not cell.metadata["mystnb"]["image"]["alt"]] == []


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_of_a_run(path: Path):
    fresh = run(path)
    if os.environ.get(RENEW) and differences(read(path), fresh):
        write(fresh, path)
    assert differences(read(path), fresh) == []


@pytest.mark.slow
def test_stale_outputs_are_found(tmp_path: Path):
    path = tmp_path / "a.ipynb"
    path.write_text(NOTEBOOK)
    fresh = run(path)
    assert differences(read(path), fresh) == ["the code has changed"]
    write(fresh, path)
    assert differences(read(path), fresh) == []
    assert [shown(cell) for cell in code_cells(fresh)] == [["2\n", PICTURE]]
    path.write_text(path.read_text().replace('"2\\n"', '"3\\n"'))
    assert differences(read(path), fresh) == ["cell a shows\n2\n\na picture"]
