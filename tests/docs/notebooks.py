# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The outputs that a notebook stores, compared with what its cells print, and renewed from it.

Text is compared as it stands, of pictures only their number: matplotlib's releases draw differently. All outputs of a
notebook are stored at once, with a digest of the code that gave them, so its pictures are of the run of its tables.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

Notebook = Any
Cell = Any

CELL_TIMEOUT_S = 300
PICTURE = "a picture"
PICTURE_TYPES = ("image/svg+xml", "image/png")
KERNEL_OPTIONS = ["--InlineBackend.figure_formats=svg"]
_SVG_METADATA = re.compile(r" *<metadata>.*?</metadata>\n", re.DOTALL)
"""The date of the picture, and the program that drew it."""


def read(path: Path) -> Notebook:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: Notebook) -> Iterator[Cell]:
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def code_digest(notebook: Notebook) -> str:
    sources = "\0".join(cell.source for cell in code_cells(notebook))
    return hashlib.sha256(sources.encode()).hexdigest()


def stored_digest(notebook: Notebook) -> str:
    """The digest of the code that printed the stored outputs; "": there are none."""
    return str(notebook.metadata.get("netfold", {}).get("outputs_of", ""))


def shown(cell: Cell) -> list[str]:
    """The outputs of the cell in words: text, or PICTURE."""
    texts = []
    for output in cell.outputs:
        data = output.get("data", {})
        if any(kind in data for kind in PICTURE_TYPES):
            texts.append(PICTURE)
        else:
            texts.append("".join(output.get("text") or data.get("text/plain", "")))
    return texts


def differences(stored: Notebook, fresh: Notebook) -> list[str]:
    """Return the differences between the outputs of a run and those in the notebook."""
    if stored_digest(stored) != code_digest(fresh):
        return ["the code has changed"]
    return [
        "\n".join([f"cell {was.id} shows", *shown(now)])
        for was, now in zip(code_cells(stored), code_cells(fresh), strict=True)
        if shown(was) != shown(now)
    ]


def run(path: Path) -> Notebook:
    """The notebook with the outputs of a run, in its folder, and their digest."""
    notebook = read(path)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=CELL_TIMEOUT_S,
        record_timing=False,
        extra_arguments=KERNEL_OPTIONS,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    notebook.metadata.language_info = {"name": "python"}  # without the version of this one
    notebook.metadata["netfold"] = {"outputs_of": code_digest(notebook)}
    for cell in code_cells(notebook):
        for output in cell.outputs:
            svg = output.get("data", {}).get("image/svg+xml")
            if svg:
                output.data["image/svg+xml"] = _SVG_METADATA.sub("", svg)
    return notebook


def write(notebook: Notebook, path: Path) -> None:
    nbformat.write(notebook, path)
