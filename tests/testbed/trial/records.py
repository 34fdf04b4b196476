# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Records of the workers of a trial."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.testbed.trial.sums import Contents, Share


@dataclass(frozen=True)
class Sum:
    """The result of a call of the job, which was last made in `epoch`."""

    call: int
    epoch: int
    digest: str
    contents: Contents


@dataclass(frozen=True)
class Turn:
    """A call as a worker made it. `sum`: None if it got no result, though others' may have its contribution."""

    salt: int
    sum: Sum | None


@dataclass(frozen=True)
class WorkerRecord:
    """A worker's process. `is_newcomer`: it is not the first of its host. `error`: the type's name; empty: it made all
    its calls. `crash`: of a process that neither ended by itself nor was killed."""

    host: str
    turns: tuple[Turn, ...]
    is_newcomer: bool = False
    is_killed: bool = False
    error: str = ""
    text: str = ""
    crash: str = ""

    @property
    def sums(self) -> list[Sum]:
        return [t.sum for t in self.turns if t.sum is not None]


def turns_of(path: Path) -> tuple[Turn, ...]:
    """Returns the turns in a file of program.py. The last line of a killed process may be cut."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    turns: list[Turn] = []
    for row in (json.loads(line) for line in lines if line.endswith("\n")):
        if "salt" in row:
            turns.append(Turn(row["salt"], None))
        else:
            turns[-1] = Turn(turns[-1].salt, _sum(row))
    return tuple(turns)


def _sum(row: dict[str, Any]) -> Sum:
    found = row["contents"]
    shares = {int(index): Share(**share) for index, share in found["shares"].items()}
    return Sum(row["call"], row["epoch"], row["digest"], Contents(shares, found["stray"], found["fewest"]))
