# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""All C is formatted by .clang-format at the root; p4src's headers are P4."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.imports import REPOSITORY

CLANG_FORMAT = Path(sys.executable).with_name("clang-format")
NO_C_OF_OURS = {"p4src", "build", "dist", "out", "node_modules"}


def _c_files() -> Iterator[Path]:
    for folder, names, files in os.walk(REPOSITORY):
        names[:] = sorted(name for name in names if name[0] != "." and name not in NO_C_OF_OURS)
        for name in files:
            if name.endswith((".c", ".h")):
                yield Path(folder, name)


@pytest.mark.skipif(
    not CLANG_FORMAT.exists(), reason="needs clang-format of the dev extra (pip install -e '.[dev]')"
)
def test_c_is_formatted():
    files = list(_c_files())
    assert len(files) > 100
    done = subprocess.run(
        [CLANG_FORMAT, "--dry-run", "-Werror", *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run `make format`:\n{done.stderr[:2000]}"
