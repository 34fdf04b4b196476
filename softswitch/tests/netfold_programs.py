# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled programs of netfold, whose repository holds softswitch/: further test cases where they are present."""

from __future__ import annotations

from pathlib import Path

import pytest

COMPILED = Path(__file__).parents[2] / "p4src" / "compiled"
LANES_64 = COMPILED / "netfold-v1model-64.json"
needs_netfold = pytest.mark.skipif(
    not COMPILED.is_dir(), reason=f"SKIPPED: netfold's compiled programs are not in {COMPILED}"
)
