# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Describes a cable between switches that does not lead where the fabric's file says."""

from __future__ import annotations

from dataclasses import dataclass

from netfold.controller.switches.failed_elements import link_name


@dataclass(frozen=True)
class Miscabling:
    """Packets that `switch` sends by `port` arrive at `arrives_at` by `arrives_by`, and the file says `expected_at` by
    `expected_by`."""

    switch: str
    port: int
    arrives_at: str
    arrives_by: int
    expected_at: str
    expected_by: int

    @property
    def link(self) -> str:
        """The name of the link that the file has at the port."""
        return link_name((self.switch, self.expected_at))

    def __str__(self) -> str:
        return (
            f"{self.switch} port {self.port} leads to {self.arrives_at} port {self.arrives_by}, "
            f"the file says {self.expected_at} port {self.expected_by}"
        )
