# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""messages.h for the agent."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from pathlib import Path

from netfold.traffic.engine import recipe
from netfold.traffic.engine.c_headers import Headers
from netfold.traffic.engine.engine import EngineAssignment, EngineDepartures, Totals, TreeReport

_HEADERS = Headers(Path(__file__).parent / "messages.h", *(recipe.FOLDER / name for name in recipe.HEADERS))


class MessageType(IntEnum):
    """enum nm_message_type."""

    HOST = 1
    SUBMIT = 2
    JOB = 3
    JOIN = 4
    PREPARE = 5
    READY = 6
    ASSIGN = 7
    DEPARTURES = 8
    REPORT = 9
    NEW_EPOCH = 10
    LEAVE = 11
    ENDED = 12


class AssignMessage(ctypes.Structure):
    _fields_ = _HEADERS.fields("nm_assign", nf_assignment=EngineAssignment)


class DeparturesMessage(ctypes.Structure):
    _fields_ = _HEADERS.fields("nm_departures", nf_departures=EngineDepartures)


class NewEpochMessage(ctypes.Structure):
    _fields_ = _HEADERS.fields("nm_new_epoch")


class ReportMessage(ctypes.Structure):
    _fields_ = _HEADERS.fields("nm_report", nf_totals=Totals, nf_tree_report=TreeReport)
