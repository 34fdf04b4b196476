# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""All C is formatted by .clang-format at the root; p4src's headers are P4."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.c_graph import c_files

CLANG_FORMAT = Path(sys.executable).with_name("clang-format")


@pytest.mark.skipif(
    not CLANG_FORMAT.exists(), reason="needs clang-format of the dev extra (pip install -e '.[dev]')"
)
def test_c_is_formatted():
    files = list(c_files())
    assert len(files) > 100
    done = subprocess.run(
        [CLANG_FORMAT, "--dry-run", "-Werror", *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run `make format`:\n{done.stderr[:2000]}"
