# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of the embedded switch share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from softswitch.build.native import default_cache_dir

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """Compiled programs are kept between runs: the key covers all that goes into them."""
    return default_cache_dir()
