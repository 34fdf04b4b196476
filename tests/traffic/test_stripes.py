# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How a call is divided over trees, beside the rules C10 to C13 of docs/reference/protocol.md in Python."""

from __future__ import annotations

import ctypes
import subprocess
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.traffic.engine.c_headers import Headers
from netfold.traffic.engine.recipe import FOLDER

HEADERS = Headers(FOLDER / "congestion/rtt.h", FOLDER / "transport/assignment.h", FOLDER / "call/balance.h")
MAX = 2**31 - 1
LANES = 16
CHANNELS = 3  # of a tree with 8 slots those of the main stream


class Assignment(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_assignment")


class Balance(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_balance")


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("balance") / "balance.so"
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    subprocess.run(["gcc", *flags, "-o", library, FOLDER / "call/balance.c", "-lm"], check=True)
    found = ctypes.CDLL(str(library))
    found.nf_balance_create.restype = ctypes.POINTER(Balance)
    found.nf_balance_create.argtypes = [ctypes.c_int64, *[ctypes.c_void_p] * 3]
    for name in ("on_row", "report", "assign_stripe"):
        rest = [ctypes.c_int64] if name == "on_row" else []
        getattr(found, f"nf_balance_{name}").argtypes = [ctypes.c_void_p, *rest, ctypes.c_double]
    return found


def balance_of(
    code: ctypes.CDLL,
    rows: int,
    shares: tuple[float, ...],
    workers: int = 1,
    slots: int = 8,
    lanes: int = LANES,
) -> Any:
    """None: the call is not striped."""
    assignment = Assignment(lanes=lanes, workers=workers, tree_count=len(shares))
    for tree, until in enumerate(np.cumsum(shares)):
        assignment.trees[tree].slots, assignment.trees[tree].cumulative_share = slots, until
    channels = (ctypes.c_int64 * len(shares))(*[CHANNELS] * len(shares))
    failed = ctypes.c_int()
    made = code.nf_balance_create(rows, ctypes.byref(assignment), channels, ctypes.byref(failed))
    assert not failed.value
    return made.contents if made else None


def stripes_by_the_page(rows: int, trees: int) -> int:
    """C10, for trees that all carry data; 0: the call is not striped."""
    channels = trees * CHANNELS
    stripes = min(rows // (4 * channels), 16)
    if stripes < 3:
        stripes = 3 if rows >= 6 * channels else 0
    return stripes


def runs_by_the_page(
    rows: int, speeds: list[int], owed: list[int], least: list[int], workers: int
) -> list[int]:
    """C13."""

    def runs(time: int) -> list[int]:
        return [
            max(few, (speed * time // 10**6 - rest) // workers) if few else 0
            for few, speed, rest in zip(least, speeds, owed, strict=True)
        ]

    low, high = 0, 1 << 60
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if sum(runs(middle)) < rows else (low, middle)
    found = runs(low)
    excess = sum(found) - rows
    for tree, few in enumerate(least):
        less = min(found[tree] - few, excess)
        found[tree] -= less
        excess -= less
    return found


def runs_of(balance: Any, stripe: int) -> list[int]:
    return [run.last - run.first for run in balance.run[stripe][: balance.trees]]


@pytest.mark.parametrize("trees", [2, 3, 4])
def test_the_number_of_stripes(code: ctypes.CDLL, trees: int):
    for rows in range(1, 80 * trees * CHANNELS):
        found = balance_of(code, rows, (1 / trees,) * trees)
        assert (found.stripes if found else 0) == stripes_by_the_page(rows, trees), rows


@pytest.mark.parametrize(
    "how",
    [{"shares": (1.0, 0.0)}, {"slots": 2}, {"lanes": 3}],
    ids=["one tree carries data", "one channel", "no lane for each report"],
)
def test_calls_that_are_not_striped(code: ctypes.CDLL, how: dict[str, Any]):
    assert balance_of(code, 10_000, **{"shares": (0.5, 0.5), **how}) is None
    assert balance_of(code, 10_000, (0.5, 0.5)) is not None


@settings(max_examples=200)
@given(
    rows=st.integers(200, 100_000),
    weights=st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(lambda w: sum(n > 0 for n in w) > 1),
    workers=st.integers(1, 64),
    data=st.data(),
)
def test_stripes_are_divided_by_the_summed_reports(code, rows, weights, workers, data):
    shares = tuple(weight / sum(weights) for weight in weights)
    balance = balance_of(code, rows, shares, workers)
    assert balance is not None
    least = [CHANNELS if weight else 0 for weight in weights]
    bounds = [rows * stripe // balance.stripes for stripe in range(balance.stripes + 1)]
    cumulative = np.cumsum(shares)
    each = [until - before for until, before in zip(cumulative, [0.0, *cumulative[:-1]], strict=True)]
    plan = [round(share * 2**20) * workers for share in each]
    assert runs_of(balance, 0) == runs_by_the_page(bounds[1], plan, [0] * len(weights), least, workers)
    speed, rest = st.integers(workers, MAX // workers * workers), st.integers(0, rows)
    for stripe in range(1, balance.stripes):
        speeds = data.draw(st.lists(speed, min_size=len(weights), max_size=len(weights)))
        owed = data.draw(st.lists(rest, min_size=len(weights), max_size=len(weights)))
        code.nf_balance_take_reports(ctypes.byref(balance), np.array(speeds + owed, ">u4").tobytes())
        code.nf_balance_assign_stripe(ctypes.byref(balance), 0.0)
        size = bounds[stripe + 1] - bounds[stripe]
        assert runs_of(balance, stripe) == runs_by_the_page(size, speeds, owed, least, workers)
        assert balance.run[stripe][0].first == bounds[stripe]


def test_a_report_is_due_at_a_quarter_of_the_stripe_before(code: ctypes.CDLL):
    balance = balance_of(code, 1200, (0.5, 0.5), workers=3)
    assert balance.stripes == 16
    for row in range(75 // 4):
        assert not code.nf_balance_report_due(ctypes.byref(balance))
        code.nf_balance_on_row(ctypes.byref(balance), row % 2, 0.01 * (row + 1))
    assert code.nf_balance_report_due(ctypes.byref(balance))
    code.nf_balance_report(ctypes.byref(balance), 0.18)
    assert not code.nf_balance_report_due(ctypes.byref(balance))
    lanes = (ctypes.c_uint32 * 4)()
    code.nf_balance_write_report(ctypes.byref(balance), lanes)
    owed = [runs_of(balance, 0)[tree] - 9 for tree in range(2)]
    assert [int.from_bytes(bytes(lanes)[i : i + 4], "big") for i in range(8, 16, 4)] == owed
    speeds = [int.from_bytes(bytes(lanes)[i : i + 4], "big") for i in range(0, 8, 4)]
    assert speeds == [9 / 0.17 // 1] * 2, "rows a second since the first row came"
