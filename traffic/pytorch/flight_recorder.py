# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The last collectives of a rank in the format of PyTorch's flight recorder, which `torchfrtrace` reads. It has all
ranks of a host, while the engine has the calls of the host's first rank alone."""

from __future__ import annotations

import functools
import pickle
import re
import time
from collections import deque
from pathlib import Path
from typing import Any

import torch

from netfold.traffic.engine.call_log import CALLS_MAX, CallKind
from netfold.traffic.worker.call_dump import new_file

VERSION = "2.10"
"""Version of the format (FlightRecorder.hpp of torch)."""


@functools.cache
def kind_of(name: str) -> CallKind:
    """The kind of a collective by netfold's name for it, such as "all-reduce of gradients"."""
    found = re.match(r"[a-z-]+", name)
    assert found is not None
    return CallKind[found[0].replace("-", "_").upper()]


class FlightEntry:
    """One collective. Times: nanoseconds since 1970."""

    __slots__ = ("created", "dtype", "elements", "ended", "failed", "kind", "number", "started")

    def __init__(self, number: int, kind: CallKind, elements: int, dtype: torch.dtype) -> None:
        self.number, self.kind, self.elements, self.dtype = number, kind, elements, dtype
        self.created = time.time_ns()
        self.started = self.ended = 0
        self.failed = False

    def end(self, error: Exception | None) -> None:
        self.failed = error is not None
        self.ended = time.time_ns()


class FlightRecorder:
    """Keeps the last CALLS_MAX collectives of a rank. `ranks`: all ranks of the session in the program's numbers, of
    which this one is the `rank`th. Thread-safe, as one thread submits."""

    def __init__(self, job: str, group: str, ranks: tuple[int, ...], rank: int) -> None:
        self._job = job or "host"
        self._group = group
        self._ranks = ranks
        self._rank = rank
        self._count = 0
        self._entries: deque[FlightEntry] = deque(maxlen=CALLS_MAX)

    def begin(self, kind: CallKind, elements: int, dtype: torch.dtype) -> FlightEntry:
        self._count += 1
        entry = FlightEntry(self._count, kind, elements, dtype)
        self._entries.append(entry)
        return entry

    def dump_to(self, folder: Path, reason: str) -> None:
        """Writes the file of this rank, in place of its last one. Raises OSError."""
        path = folder / f"netfold-fr-{self._job}-rank_{self._ranks[self._rank]}"
        with new_file(path, "b") as file:
            pickle.dump(self.document(), file)

    def document(self) -> dict[str, Any]:
        config = {"name": self._group, "desc": "netfold", "ranks": f"{list(self._ranks)}"}
        return {
            "version": VERSION,
            "pg_config": {self._group: config},
            "pg_status": {},
            "entries": [self._entry(e) for e in list(self._entries)],
        }

    def _entry(self, entry: FlightEntry) -> dict[str, Any]:
        whole, block = entry.elements, entry.elements // len(self._ranks)
        given = block if entry.kind is CallKind.ALL_GATHER else whole
        got = block if entry.kind is CallKind.REDUCE_SCATTER else whole
        state = (
            "completed" if entry.ended and not entry.failed else "started" if entry.started else "scheduled"
        )
        dtype = str(entry.dtype).removeprefix("torch.")
        return {
            "record_id": entry.number - 1,
            "pg_id": 0,
            "process_group": (self._group, "netfold"),
            "collective_seq_id": entry.number,
            "p2p_seq_id": 0,
            "op_id": entry.number,
            # one of the backends that the analyzer knows
            "profiling_name": f"gloo:{entry.kind.label}",
            "time_created_ns": entry.created,
            "time_discovered_started_ns": entry.started or None,
            "time_discovered_completed_ns": entry.ended or None,
            "input_sizes": [[given]],
            "input_dtypes": [dtype],
            "output_sizes": [[got]],
            "output_dtypes": [dtype],
            "state": state,
            "retired": bool(entry.ended),
            "timeout_ms": 0,
            "is_p2p": False,
            "frames": [],
        }
