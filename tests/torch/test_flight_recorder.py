# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The last collectives of ranks, as PyTorch's own analyzer of flight recorders reads them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
fr_trace = pytest.importorskip("torch.distributed.flight_recorder.fr_trace")

from netfold.traffic.engine.call_log import CALLS_MAX, CallKind  # noqa: E402
from netfold.traffic.pytorch.flight_recorder import FlightRecorder, kind_of  # noqa: E402

RANKS = (0, 1, 2)


def recorders() -> list[FlightRecorder]:
    return [FlightRecorder("train", "0", RANKS, rank) for rank in RANKS]


def analyzed(folder: Path, made: list[FlightRecorder]) -> Any:
    """The collectives that `torchfrtrace` finds."""
    dumps = folder / "dumps"
    dumps.mkdir()
    for recorder in made:
        recorder.dump_to(dumps, "a test")
    out = folder / "found"
    fr_trace.main([str(dumps), "--prefix", "netfold-fr-train-rank_", "-o", str(out)])
    _, database = pickle.loads(out.read_bytes())
    return database.collectives


def test_equal_calls_match(tmp_path: Path) -> None:
    made = recorders()
    for recorder in made:
        for kind in CallKind:
            entry = recorder.begin(kind, 12, torch.float32)
            entry.started = entry.created
            entry.end(None)
    found = analyzed(tmp_path, made)
    assert [c.pass_check for c in found] == [True] * len(CallKind)
    assert [c.collective_name for c in found] == [f"gloo:{kind.label}" for kind in CallKind]


def test_a_rank_that_makes_another_call_is_found(tmp_path: Path) -> None:
    made = recorders()
    for rank, recorder in enumerate(made):
        recorder.begin(CallKind.ALL_REDUCE, 12, torch.float32).end(None)
        recorder.begin(CallKind.BROADCAST if rank == 1 else CallKind.ALL_REDUCE, 12, torch.float32)
    first, second = analyzed(tmp_path, made)[:2]
    assert first.pass_check
    assert not second.pass_check
    assert 1 in second.mismatch_collectives


def test_the_newest_calls_are_kept() -> None:
    recorder = recorders()[0]
    for _ in range(CALLS_MAX + 3):
        recorder.begin(CallKind.BARRIER, 1, torch.int32)
    entries = recorder.document()["entries"]
    assert len(entries) == CALLS_MAX
    assert entries[0]["collective_seq_id"] == 4


def test_names_of_collectives_have_kinds() -> None:
    assert kind_of("all-reduce of gradients") is CallKind.ALL_REDUCE
    assert kind_of("reduce-scatter (MAX)") is CallKind.REDUCE_SCATTER
