# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The stored intent of an operator or a rollout to free an element of the fabric."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from netfold.controller.jobs.records import Record

WallClock = Annotated[float, Field(allow_inf_nan=False)]
"""Seconds since 1970. JSON has no other numbers: the store would read null."""


class Intent(StrEnum):
    """The intent of an operator for an element that works.

    cordon  plans avoid it; jobs and routes that use it stay
    drain   plans avoid it; jobs and routes leave it where there is another way
    hold    plans avoid it; for some time a switch may be away, and no job or member is lost for it
    """

    CORDON = "cordon"
    DRAIN = "drain"
    HOLD = "hold"


class Withdrawal(Record):
    """A withdrawn element. It is stored until the element is given back, so that it outlives the controller.

    element  name of a switch or host; of a link the names of its ends, in order, as in `leaf1-spine1`
    reason   free text of the operator
    since    wall clock, in seconds
    until    of a hold: wall clock, in seconds
    is_for_rollout  a rollout has withdrawn it, and gives it back
    """

    element: str
    intent: Intent
    reason: str = ""
    since: WallClock = 0.0
    until: WallClock = 0.0
    is_for_rollout: bool = False
