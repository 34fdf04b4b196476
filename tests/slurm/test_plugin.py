# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Slurm's plugin compiles without a warning where Slurm's headers are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.slurm.plugin import compile_plugin, headers


def test_the_plugin_compiles_and_has_what_slurm_looks_for(tmp_path: Path):
    include = headers()
    if include is None:
        pytest.skip("SKIPPED: needs Slurm's headers: make test-slurm unpacks them")
    library = tmp_path / "spank_netfold.so"
    compile_plugin(library, include)
    shown = subprocess.run(["nm", "-D", library], check=True, capture_output=True, text=True).stdout
    symbols = {line.split()[-1] for line in shown.splitlines()}
    assert {"plugin_name", "plugin_type", "plugin_version", "slurm_spank_init"} <= symbols
