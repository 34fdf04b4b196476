# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Minor versions of PyTorch from the oldest that pyproject.toml allows. `make test-torch` takes the newest."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

VERSIONS = ("2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1")
REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("version", VERSIONS)
def test_netfold_works_with_a_version_of_pytorch(version: str):
    own = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    environment = {name: value for name, value in os.environ.items() if name not in own}
    folder = REPOSITORY / f".venv-torch-{version}"
    is_kept = folder.exists()
    try:
        done = subprocess.run(
            ["make", f"test-torch-{version}"],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:  # with CUDA's packages it takes 6 GB
        if not is_kept:
            shutil.rmtree(folder, ignore_errors=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
