# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One line for all that does not run where BMv2 is missing."""

from __future__ import annotations

import pytest

from tests.dataplane import bmv2
from tests.dataplane.conftest import BMV2, TARGETS


@pytest.mark.bmv2
@pytest.mark.root
def test_the_data_plane_is_tested_on_bmv2_too():
    if (why := bmv2.missing()) is not None:
        pytest.skip(f"{why}: the data-plane tests run on softswitch alone")
    assert BMV2 in TARGETS
