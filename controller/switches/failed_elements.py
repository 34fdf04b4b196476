# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Describes failed links and switches for planners and routes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FailedElements:
    """Links (in both directions) and switches that planners and routes avoid."""

    links: frozenset[frozenset[str]] = frozenset()
    switches: frozenset[str] = frozenset()

    def covers(self, a: str, b: str) -> bool:
        """True if the link a-b or one of its ends has failed."""
        return frozenset((a, b)) in self.links or a in self.switches or b in self.switches
