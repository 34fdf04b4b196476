# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs scatters and gathers of the second implementation of docs/reference/protocol.md beside the engine's. Every block
has the bits that engines alone give it, whichever worker and root made it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import numpy as np
import pytest
from numpy.typing import NDArray

from examples.protocol import node as second_node
from examples.protocol import worker as second_worker
from netfold.protocol.target import Targets
from netfold.traffic.engine.blocks import Blocks, CallForm
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker
from tests.traffic.oracle_server import Faults
from tests.traffic.serving import serving
from tests.traffic.test_protocol_example import EPOCH, PORTS, ROOT, TREE, _serving, host

LANES = 32
WORKERS = 3
SIZES = (700, 0, 1_234)
SMALL = (40, 9, 51)
"""A scatter of such blocks is a sum to all."""

Scatter = Callable[[NDArray[np.float32], tuple[int, ...]], NDArray[np.float32]]
Part = NDArray[np.generic]


def _assignment(port: int, rank: int, slots: int, root: str = ROOT) -> Assignment:
    children = tuple(range(WORKERS))
    sources = tuple((host(child),) for child in children)
    part = TreeAssignment(TREE, 1.0, slots, slots // 2, rank, root, children, sources)
    return Assignment("t", EPOCH, port, LANES, rank, WORKERS, (part,), targets=Targets.ON)


def _call(form: CallForm, array: Part, sizes: tuple[int, ...], worker: Worker, rank: int) -> Part:
    """By the engine."""
    blocks = Blocks(form, sizes, tuple(range(WORKERS))) if form else None
    worker.submit(array, timeout=30.0, blocks=blocks).result()
    first = sum(sizes[:rank])
    return array[first : first + sizes[rank]] if form is CallForm.SCATTER else array


def _second_call(
    form: CallForm, array: Part, sizes: tuple[int, ...], worker: second_worker.Worker, rank: int
) -> Part:
    first = sum(sizes[:rank])
    if form is CallForm.SCATTER:
        return worker.reduce_scatter(array, sizes)
    if form is CallForm.GATHER:
        return worker.all_gather(array[first : first + sizes[rank]], sizes)
    return worker.all_reduce(array)


def _calls() -> list[tuple[CallForm, tuple[int, ...], list[Part]]]:
    """Floats of like magnitudes, with a jump, zeros, NaN and infinities, and integers at the limits."""
    rng, found = np.random.default_rng(5), list[tuple[CallForm, tuple[int, ...], list[Part]]]()
    for scale, sizes in ((1.0, SIZES), (1.5, SIZES), (0.0, SIZES), (1e6, SIZES), (1.0, SIZES), (1.0, SMALL)):
        size = sum(sizes)
        floats = [(rng.standard_normal(size) * scale).astype(np.float32) for _ in range(WORKERS)]
        words = [rng.integers(-(1 << 31), 1 << 31, size).astype(np.int32) for _ in range(WORKERS)]
        numbers = [rng.integers(-(1 << 29), 1 << 29, size).astype(np.int32) for _ in range(WORKERS)]
        numbers[0][:9], numbers[1][:9], numbers[2][:9] = (1 << 31) - 1, -7, 6
        found += [(CallForm.SCATTER, sizes, [*floats]), (CallForm.GATHER, sizes, [*words])]
        found += [(CallForm.SCATTER, sizes, [*numbers]), (CallForm.TO_ALL, sizes, [*floats])]
    for rank, value in ((0, np.inf), (1, -np.inf), (2, np.nan)):
        found[4][2][rank][[5, 900 + rank]] = value
    return found


def _results(kinds: str, root: str, slots: int, loss: float = 0.0) -> list[list[bytes]]:
    """The parts of all workers: engines (e), or of the second implementation (s)."""
    port, hosts = next(PORTS), [host(rank) for rank in range(WORKERS)]
    faults = Faults(loss=loss, duplicate=loss, delay=loss)
    places = [(address, port) for address in hosts]
    children = {rank: second_node.Child(rank, place) for rank, place in enumerate(places)}
    entry = second_node.TreeEntry(
        TREE, EPOCH, slots, LANES, children, tuple(places), ranks={p: (r,) for r, p in enumerate(places)}
    )
    destinations = [ROOT] * WORKERS
    with ExitStack() as stack:
        if root == "engine":
            receivers = [Address(address, port) for address in hosts]
            stack.enter_context(serving(ParameterServer(_assignment(port, 0, slots), ROOT, receivers)))
        else:
            stack.enter_context(_serving(port, ROOT, entry, faults))
        calls: list[Callable[..., Part]] = []
        for rank, kind in enumerate(kinds):
            if kind == "e":
                given = _assignment(port, rank, slots, destinations[rank])
                engine = stack.enter_context(Worker(StaticMembership(given), hosts[rank]))
                calls.append(functools.partial(_call, worker=engine, rank=rank))
            else:
                mine = second_worker.Assignment(
                    *(EPOCH, WORKERS, LANES, TREE, slots, slots // 2, rank, rank),
                    *(places[rank], (destinations[rank], port), True),
                )
                second = stack.enter_context(closing(second_worker.Worker(mine)))
                calls.append(functools.partial(_second_call, worker=second, rank=rank))
        pool = stack.enter_context(ThreadPoolExecutor(WORKERS))
        found = []
        for form, sizes, arrays in _calls():
            parts = [pool.submit(one, form, a.copy(), sizes) for one, a in zip(calls, arrays, strict=True)]
            found.append([part.result().tobytes() for part in parts])
        return found


@pytest.fixture(scope="module", params=[8, 64], ids=["one stream for all data", "a stream for gathers"])
def of_engines(request: pytest.FixtureRequest) -> tuple[int, list[list[bytes]]]:
    return request.param, _results("eee", "engine", request.param)


@pytest.mark.parametrize(
    ("kinds", "root", "loss"),
    [
        ("ese", "engine", 0.0),
        pytest.param("sss", "engine", 0.0, marks=pytest.mark.slow),
        ("eee", "second", 0.0),
        pytest.param("ses", "second", 0.05, marks=pytest.mark.slow),
    ],
)
def test_blocks_have_the_bits_that_engines_give_them(
    of_engines: tuple[int, list[list[bytes]]], kinds: str, root: str, loss: float
):
    slots, expected = of_engines
    for number, (found, right) in enumerate(zip(_results(kinds, root, slots, loss), expected, strict=True)):
        assert found == right, f"call {number}"
