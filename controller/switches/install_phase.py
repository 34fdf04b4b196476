# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the order in which entities go into a switch (install.py)."""

from __future__ import annotations

from enum import IntEnum


class Phase(IntEnum):
    RESERVATIONS = 0
    MEMBERS = 1
    SETS = 2
    FORWARDING = 3
    GROUPS = 4
    ROUTES = 5
    REFUSALS = 6
    ADMISSION = 7
