# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The type of an update."""

from __future__ import annotations

from enum import IntEnum


class Change(IntEnum):
    """p4.v1.Update.Type, without UNSPECIFIED."""

    INSERT = 1
    MODIFY = 2
    DELETE = 3
