# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""resume.c beside the model of tests/model: every state of a few workers that the protocol can reach at the start of an
epoch, with the votes as lanes that switches add."""

from __future__ import annotations

import ctypes
import itertools
import random
import subprocess
from dataclasses import dataclass

import numpy as np
import pytest

from netfold.traffic.engine.recipe import FOLDER
from tests.model.calls import Epoch, Worker
from tests.model.network import Violation
from tests.model.newcomers import Newcomers
from tests.model.targeted_calls import TargetedCalls

MODULUS, LANES, MAX_DEPTH = 9, 40, 4
HEADER_WORDS = 4
_N, _I = ctypes.c_int64, ctypes.c_int


class Terms(ctypes.Structure):
    _fields_ = (
        ("workers", _N),
        ("depth", _N),
        ("has_quorum", _I),
        ("has_newcomers", _I),
        ("has_scatters", _I),
    )


class This(ctypes.Structure):
    """struct resume_worker."""

    _fields_ = (
        ("next_call", _N),
        ("first_call", _N),
        ("is_newcomer", _I),
        ("was_started", _I),
        ("is_ready", _I),
    )


class Number(ctypes.Structure):
    _fields_ = tuple((name, _N) for name in ("byte", "byte_sent", "byte_max", "newest_call"))


class Votes(ctypes.Structure):
    _fields_ = (
        ("calls", _N * (3 * MODULUS)),
        ("missing", _N * MODULUS),
        ("chunks", _N * MODULUS),
        ("newcomers", _N),
    )


class NonceField(ctypes.Structure):
    _fields_ = (("lane", _N), ("shift", _I), ("mask", ctypes.c_uint32))


class Outcome(ctypes.Structure):
    _fields_ = (
        ("is_desync", _I),
        ("is_ready_finished", _I),
        *((name, _N) for name in ("first", "end", "next_call", "first_call", "stable_until")),
        *((name, _N * (MAX_DEPTH + 1)) for name in ("holders", "contributors", "chunks")),
    )


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("resume") / "resume.so"
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    subprocess.run(["gcc", *flags, "-o", library, FOLDER / "resume/resume.c"], check=True)
    found = ctypes.CDLL(str(library))
    found.resume_vote.restype, found.resume_evaluate_votes.restype = Votes, Outcome
    found.resume_evaluate_votes.argtypes = [ctypes.c_void_p, ctypes.c_void_p, _N, ctypes.c_void_p]
    found.resume_offer.argtypes = [ctypes.c_void_p, _N, _N]
    found.resume_nonce_field.restype = NonceField
    found.resume_nonce_field.argtypes = [ctypes.c_void_p, _N, _N]
    found.resume_write_nonce.argtypes = found.resume_has_nonce.argtypes = [NonceField, _N, ctypes.c_void_p]
    found.resume_read_votes.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, _N]
    return found


@dataclass(frozen=True)
class State:
    """A worker's state: the first call whose result it lacks, whether it was started, and the first whose result it
    has."""

    next_call: int
    was_started: bool = False
    first_call: int = 0
    is_newcomer: bool = False
    is_ready: bool = False

    def holds(self, call: int) -> bool:
        return not self.is_newcomer and self.first_call <= call < self.next_call


def size_of(call: int) -> int:
    return 3 + call % 5


def exchange(code: ctypes.CDLL, terms: Terms, states: tuple[State, ...]) -> list[Outcome]:
    """Returns each worker's conclusion from the sums of the votes."""
    packets = np.zeros((len(states), HEADER_WORDS + LANES), np.uint32)
    these = [This(s.next_call, s.first_call, s.is_newcomer, s.was_started, s.is_ready) for s in states]
    for state, this, row in zip(states, these, packets, strict=True):
        votes = code.resume_vote(ctypes.byref(terms), ctypes.byref(this))
        for call in range(max(0, state.next_call - terms.depth), state.next_call):
            if state.holds(call) and terms.has_newcomers:
                code.resume_offer(ctypes.byref(votes), call, size_of(call))
        code.resume_write_votes(ctypes.byref(terms), ctypes.byref(votes), ctypes.c_void_p(row.ctypes.data))
    summed = packets.byteswap().sum(axis=0, dtype=np.uint32).byteswap()
    newest = max((s.next_call for s in states if not s.is_newcomer), default=0)
    sums = Votes()
    code.resume_read_votes(ctypes.byref(terms), ctypes.byref(sums), summed.ctypes.data, LANES)
    return [
        code.resume_evaluate_votes(ctypes.byref(terms), ctypes.byref(this), newest, ctypes.byref(sums))
        for this in these
    ]


def model_of(states: tuple[State, ...], depth: int, calls: int) -> tuple[Epoch, list[Worker]]:
    """The epoch's chunks of handovers and the workers after it, by the model. Raises Violation."""
    model = Newcomers(
        len(states), calls, depth, 1, arrivals=(0,) * len(states), departures=(9,) * len(states)
    )
    workers = [
        Worker(
            done=s.next_call,
            values=(0,) * s.next_call,
            tried=s.was_started,
            first=s.first_call,
            strange=s.is_newcomer,
        )
        for s in states
    ]
    blank = model.no_votes(0)
    epoch = Epoch(tuple(map(model.ballot, workers)), (blank,) * calls, ())  # type: ignore[arg-type]
    after = []
    for number, worker in enumerate(workers):
        changed, epoch = model.together(worker, epoch, number)
        after.append(changed)
    return epoch, after


def compare(code: ctypes.CDLL, states: tuple[State, ...], depth: int, has_newcomers: bool) -> str:
    """Gives which case it was."""
    terms = Terms(len(states), depth, 0, has_newcomers)
    outcomes = exchange(code, terms, states)
    members = [s for s in states if not s.is_newcomer]
    first, end = min(s.next_call for s in members), max(s.next_call for s in members)
    try:
        epoch, after = model_of(states, depth, end + 1)
    except Violation:
        assert all(o.is_desync for o in outcomes), states
        return "desync"
    holders = [
        sum(kind == "hand" and value is not None for kind, value in epoch.main[call])
        for call in range(first, end)
    ]
    if 0 in holders:
        assert all(o.is_desync for o in outcomes), states
        return "gone"
    for outcome, state, worker in zip(outcomes, states, after, strict=True):
        assert not outcome.is_desync, states
        assert (outcome.first, outcome.end) == (first, end)
        assert (outcome.next_call, outcome.first_call) == (worker.done, worker.first)
        assert outcome.stable_until == (end if state.is_newcomer else first) == worker.proven
        assert outcome.holders[: end - first] == holders
        past = [sum(s.next_call > call and not s.holds(call) for s in members) for call in range(first, end)]
        assert outcome.contributors[: end - first] == [len(members) - missing for missing in past]
        if has_newcomers:
            assert outcome.chunks[: end - first] == [size_of(call) for call in range(first, end)]
    return "handover" if end > first else "in step"


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_workers_conclude_what_the_model_does(code: ctypes.CDLL, depth: int):
    """Up to three workers, at most `depth` calls apart, anywhere modulo 2 * depth + 1."""
    cases = set()
    for base, workers in itertools.product((0, 1, 2 * depth, 7), (1, 2, 3)):
        each = [State(call, started) for call in range(base, base + depth + 1) for started in (False, True)]
        for states in itertools.product(each, repeat=workers):
            if max(s.next_call for s in states) - min(s.next_call for s in states) <= depth:
                cases.add(compare(code, states, depth, has_newcomers=False))
    assert cases == {"desync", "handover", "in step"}


def compare_scatters(code: ctypes.CDLL, states: tuple[State, ...], depth: int) -> str:
    """Gives which case it was. Calls of ready workers are scatters, all others sums."""
    outcomes = exchange(code, Terms(len(states), depth, 0, 0, 1), states)
    scatters = frozenset(s.next_call for s in states if s.is_ready)
    calls = max(s.next_call for s in states) + 2
    model = TargetedCalls(len(states), calls, depth, 1, scatters=scatters)
    workers = [
        Worker(done=s.next_call, values=(0,) * s.next_call, tried=s.was_started, ready=int(s.is_ready))
        for s in states
    ]
    votes = tuple(map(model.ballot, workers))
    epoch = Epoch(votes, ((None,) * len(states),) * calls, ())  # type: ignore[arg-type]
    try:
        after = [model.together(worker, epoch, number)[0] for number, worker in enumerate(workers)]
    except Violation as violation:
        if violation.name == "handover":
            assert all(scatters & set(range(o.first, o.end)) for o in outcomes), states
        else:
            assert all(o.is_desync for o in outcomes), states
        return violation.name
    for outcome, state, worker in zip(outcomes, states, after, strict=True):
        assert not outcome.is_desync, states
        assert (outcome.first, outcome.end) == model.span(epoch)
        assert outcome.stable_until == worker.proven, states
        assert state.next_call + outcome.is_ready_finished == worker.done, states
    is_finished = any(outcome.is_ready_finished for outcome in outcomes)
    return "finished" if is_finished else "again" if scatters else "sums"


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_ready_workers_conclude_what_the_model_does(code: ctypes.CDLL, depth: int):
    cases = set()
    for base, workers in itertools.product((0, 2 * depth, 7), (1, 2, 3)):
        each = [
            State(call, is_started, is_ready=is_ready)
            for call in range(base, base + depth + 1)
            for is_started, is_ready in ((False, False), (True, False), (True, True))
        ]
        for states in itertools.product(each, repeat=workers):
            if max(s.next_call for s in states) - min(s.next_call for s in states) <= depth:
                cases.add(compare_scatters(code, states, depth))
    assert cases >= {"strangers", "handover", "finished", "again", "sums"}


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_newcomers_conclude_what_the_model_does(code: ctypes.CDLL, depth: int):
    """Beside members some of which joined during the last calls: their results are not to be had from them."""
    cases = set()
    for base in (0, 2, 2 * depth + 1):
        members = [
            State(call, True, first)
            for call in range(base, base + depth + 1)
            for first in {0, base, max(0, call - 1), call}
            if first <= call
        ]
        each = [*members, State(0, is_newcomer=True)]
        for states in itertools.product(each, repeat=3):
            if any(not s.is_newcomer for s in states):
                cases.add(compare(code, states, depth, has_newcomers=True))
    assert cases == {"gone", "handover", "in step"}


def test_newcomers_alone_start_with_call_0(code: ctypes.CDLL):
    for outcome in exchange(code, Terms(3, 4, 0, 1), (State(0, is_newcomer=True),) * 3):
        assert (outcome.is_desync, outcome.first, outcome.end, outcome.next_call) == (0, 0, 0, 0)


def test_a_quorum_s_worker_may_start_a_call_that_others_have(code: ctypes.CDLL):
    """Sums were made without it."""
    states = (State(5, True), State(6, True), State(5, was_started=False))
    assert all(o.is_desync for o in exchange(code, Terms(3, 4, 0, 0), states))
    for outcome in exchange(code, Terms(3, 4, 1, 1), states):
        assert (outcome.is_desync, outcome.first, outcome.end, outcome.holders[0]) == (0, 5, 6, 1)


@pytest.mark.parametrize("bits", [3, 20, 47])
def test_the_greatest_call_number_is_found_byte_by_byte(code: ctypes.CDLL, bits: int):
    rng = random.Random(bits)
    for _ in range(300):
        near = rng.getrandbits(bits)
        calls = [max(0, near - rng.randrange(rng.choice((5, 300, 1 << bits)))) for _ in range(4)]
        these = [This(next_call=call) for call in calls]
        numbers = [Number() for _ in calls]
        for _ in range(6):
            for number, this in zip(numbers, these, strict=True):
                code.resume_send_call_byte(ctypes.byref(number), ctypes.byref(this))
            largest = max(number.byte_sent for number in numbers)
            for number in numbers:
                number.byte_max = largest
                code.resume_take_call_byte(ctypes.byref(number))
        assert {number.newest_call for number in numbers} == {max(calls)}


@pytest.mark.parametrize("has_newcomers", [False, True])
@pytest.mark.parametrize(("workers", "lanes"), [(2, 32), (5, 32), (23, 32), (120, 32), (300, 64), (247, 256)])
def test_each_worker_finds_its_nonce_in_the_sum_and_no_other_process_does(
    code, workers, lanes, has_newcomers
):
    chosen = random.Random(8)
    terms = Terms(workers, MAX_DEPTH, 0, has_newcomers)
    fields = [code.resume_nonce_field(ctypes.byref(terms), lanes, rank) for rank in range(workers)]
    nonces = [chosen.getrandbits(30) for _ in range(workers)]
    summed = np.zeros(HEADER_WORDS + lanes, ">u4")
    for field, nonce in zip(fields, nonces, strict=True):
        row = np.zeros_like(summed)
        code.resume_write_nonce(field, nonce, row.ctypes.data)
        summed += row
    first = 3 * MODULUS + 1 if has_newcomers else MODULUS
    assert not summed[: HEADER_WORDS + first].any(), "votes have their lanes for themselves"
    assert summed.max() < 1 << 30, "no node saturates"
    for field, nonce in zip(fields, nonces, strict=True):
        assert field.mask, "there is room"
        assert code.resume_has_nonce(field, nonce, summed.ctypes.data)
        other = nonce ^ (1 + chosen.randrange(field.mask))
        assert not code.resume_has_nonce(field, other, summed.ctypes.data)


@pytest.mark.parametrize(("workers", "lanes", "depth"), [(2, 9, 4), (31, 10, 4), (4, 1, 0)])
def test_without_room_there_is_no_nonce(code, workers, lanes, depth):
    terms = Terms(workers, depth, 0, 0)
    assert [code.resume_nonce_field(ctypes.byref(terms), lanes, r).mask for r in range(workers)] == [
        0
    ] * workers


def test_a_ready_worker_makes_its_scatter_again_with_newcomers(code: ctypes.CDLL):
    """Their resume chunk has no lanes for ready workers."""
    terms = Terms(3, MAX_DEPTH, 0, 1, 0)
    states = (State(5, True, is_ready=True), State(5, True), State(0, is_newcomer=True))
    for outcome in exchange(code, terms, states):
        assert (outcome.is_desync, outcome.is_ready_finished, outcome.next_call) == (0, 0, 5)
