# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Flows and slot pools in virtual time, over a network that loses, doubles and reorders as hypothesis
wants."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netfold.traffic.errors import RoundsExhausted
from netfold.traffic.membership.assignment import Assignment, TreePart
from netfold.traffic.packets.transport import Inbox
from netfold.traffic.packets.wire import ROUNDS, VERSION, Kind, Verdict, make_tag, packet, packet_bytes
from netfold.traffic.server.slots import SlotPool
from netfold.traffic.worker.channels import Channels
from netfold.traffic.worker.congestion import FixedWindow
from netfold.traffic.worker.flow import Flow, Pacer
from netfold.traffic.worker.native import library
from netfold.traffic.worker.rtt import RttEstimator
from netfold.traffic.worker.work import Filled

LANES = 4


@pytest.fixture(autouse=True, params=["numpy", "native"])
def kind(request, monkeypatch):
    """Every test with both kinds of channels."""
    if request.param == "numpy":
        monkeypatch.setattr("netfold.traffic.worker.flow.make_channels", Channels)
    elif library() is None:
        pytest.skip("no C compiler: channels.c cannot be built, so only the numpy channels are tested")


class Outbox:
    """An endpoint that keeps what is sent, up to `room` packets at a time."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.packets: list[bytes] = []
        self.room = room

    def send(self, rows, count):
        took = min(count, self.room - len(self.packets))
        self.packets += [rows.payload(message) for message in range(took)]
        return took


class Numbers:
    """Work whose chunk c carries 1000 * rank + c in all lanes; remembers the sums and how often each was
    given."""

    def __init__(self, rank: int, count: int) -> None:
        self.rank = rank
        self.count = count
        self.sums = np.zeros(count, np.int64)
        self.given = np.zeros(count, np.int64)

    def fill(self, chunks):
        lanes = np.repeat((1000 * self.rank + chunks).astype(np.int32)[:, None], LANES, axis=1)
        return Filled(lanes, np.full(len(chunks), self.rank, np.uint8))

    def take(self, chunks, lanes, exponents, flags):
        assert (lanes == lanes[:, :1]).all()
        self.sums[chunks] = lanes[:, 0]
        np.add.at(self.given, chunks, 1)


def make_flow(
    rank: int, slots: int, window: int, outbox: Outbox, epoch: int = 1, pacer: Pacer | None = None
) -> Flow:
    part = TreePart(3, 1.0, slots, slots // 2, rank, "10.0.0.1")
    assignment = Assignment("t", epoch, 61440, LANES, rank, 4, (part,))
    return Flow(assignment, part, outbox, FixedWindow(window), pacer or Pacer(0, 100, 0.0))


class Network:
    """Two inner nodes below a root (or the root alone), and the packets between them and the workers."""

    def __init__(
        self, flows: list[Flow], outboxes: list[Outbox], slots: int, two_levels: bool, rng: random.Random
    ):
        self.flows, self.outboxes, self.rng = flows, outboxes, rng
        self.half = (len(flows) + 1) // 2
        self.two_levels = two_levels and len(flows) > 1
        sides = [self.half, len(flows) - self.half]
        self.inner = [SlotPool(slots, LANES, n, root=False) for n in sides] if self.two_levels else []
        self.root = SlotPool(slots, LANES, 2 if self.two_levels else len(flows), root=True)
        self.flying: list[tuple[str, int, np.ndarray]] = []  # (to, which, record)

    def collect(self) -> None:
        for rank, outbox in enumerate(self.outboxes):
            for payload in outbox.packets:
                record = np.frombuffer(payload, packet(LANES)).copy()
                self.flying.append(("inner" if self.two_levels else "root", rank, record))
            outbox.packets.clear()

    def step(self, loss: float, duplicate: float, now: float) -> None:
        to, which, record = self.flying.pop(self.rng.randrange(min(len(self.flying), 6)))
        if self.rng.random() < loss:
            return
        if self.rng.random() < duplicate:
            self.flying.append((to, which, record.copy()))
        if to == "worker":
            feed(self.flows[which], record, now=now)
            return
        side = int(which >= self.half)
        pool, bit = (self.inner[side], which - side * self.half) if to == "inner" else (self.root, which)
        r = record[0]
        done = pool.gradient(
            int(r["tag"]), int(r["slot"]), bit, int(r["flags"]), int(r["exponent"]), r["lane"]
        )
        if done.packet is None:
            return
        record["lane"], record["exponent"] = done.packet.lanes, done.packet.exponent
        if to == "inner":
            self.flying.append(("root", side, record))
            return
        record["version_kind"] = VERSION << 4 | Kind.RESULT
        for rank in self._asked(which, done.verdict):
            self.flying.append(("worker", rank, record.copy()))

    def _asked(self, child: int, verdict: Verdict) -> range:
        everyone = range(len(self.flows))
        if verdict is Verdict.RESULT_SENT:
            return everyone
        if self.two_levels:
            return everyone[: self.half] if child == 0 else everyone[self.half :]
        return range(child, child + 1)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    workers=st.integers(1, 4),
    slots=st.sampled_from([2, 4, 8, 16]),
    windows=st.lists(st.integers(1, 8), min_size=4, max_size=4),
    counts=st.lists(st.integers(1, 50), min_size=1, max_size=3),
    two_levels=st.booleans(),
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    duplicate=st.sampled_from([0.0, 0.2]),
    room=st.sampled_from([1, 5, 1 << 30]),
    seed=st.integers(0, 10_000),
)
def test_every_worker_ends_with_every_sum_once(
    workers, slots, windows, counts, two_levels, loss, duplicate, room, seed
):
    rng = random.Random(seed)
    outboxes = [Outbox(room) for _ in range(workers)]
    flows = [
        make_flow(rank, slots, min(windows[rank], slots // 2), outboxes[rank]) for rank in range(workers)
    ]
    network = Network(flows, outboxes, slots, two_levels, rng)
    turn: dict[int, int] = dict.fromkeys(range(workers), -1)
    works = [[Numbers(rank, count) for count in counts] for rank in range(workers)]
    now, quiet = 0.0, 0
    while any(turn[rank] < len(counts) for rank in range(workers)):
        for rank, flow in enumerate(flows):
            if flow.done and turn[rank] < len(counts):
                turn[rank] += 1
                if turn[rank] < len(counts):
                    flow.start(works[rank][turn[rank]])
            flow.on_timer(now)
            flow.pump(now)
            assert flow.under_way <= slots // 2
        network.collect()
        if network.flying:
            network.step(loss, duplicate, now)
            now += 0.0001
            quiet = 0
        else:
            now += 0.2  # nothing moves: let the timers run
            quiet += 1
            assert quiet < 50, f"stuck at {[flow.missing() for flow in flows if not flow.done]}"
    for call, count in enumerate(counts):
        expected = workers * np.arange(count) + 1000 * sum(range(workers))
        for rank in range(workers):
            assert works[rank][call].sums.tolist() == expected.tolist()
            assert (works[rank][call].given == 1).all()


def result(flow: Flow, chunk: int, slots: int, epoch: int = 1) -> np.ndarray:
    record = np.zeros(1, packet(LANES))
    record["version_kind"] = VERSION << 4 | Kind.RESULT
    record["tag"], record["slot"], record["lanes"] = make_tag(epoch, chunk // slots), chunk % slots, LANES
    record["tree"] = flow.part.tree
    return record


def feed(flow: Flow, *records: np.ndarray, now: float = 0.001) -> int:
    """As if the records had come in one batch."""
    inbox = Inbox(2, LANES)
    for row, record in enumerate(records):
        inbox.records[row] = record[0]
    inbox.sizes(len(records))[:] = packet_bytes(LANES)
    return flow.on_results(inbox, len(records), now)


def test_results_that_nobody_waits_for_change_nothing():
    outbox = Outbox()
    flow = make_flow(0, 8, 4, outbox)
    flow.start(Numbers(0, 10))
    flow.pump(0.0)
    assert len(outbox.packets) == 4
    assert feed(flow, result(flow, 4, 8)) == 0  # not sent yet
    assert feed(flow, result(flow, 0, 8, epoch=2)) == 0
    assert feed(flow, result(flow, 8, 8)) == 0  # the same slot, a later round
    assert feed(flow, result(flow, 0, 8)) == 1
    assert feed(flow, result(flow, 0, 8)) == 0  # again
    assert feed(flow, result(flow, 1, 8), result(flow, 1, 8)) == 1


def test_a_chunk_that_was_overtaken_is_sent_again_before_its_time_is_up():
    outbox = Outbox()
    flow = make_flow(0, 8, 2, outbox)
    flow.start(Numbers(0, 10))
    flow.pump(0.0)
    feed(flow, result(flow, 1, 8), now=0.001)
    flow.pump(0.001)
    feed(flow, result(flow, 2, 8), now=0.002)  # sent 1 ms after chunk 0, and back
    outbox.packets.clear()
    flow.on_timer(0.0021)
    again = [np.frombuffer(p, packet(LANES))["slot"][0] for p in outbox.packets]
    assert again == [0]
    assert flow.retransmits == 1


def test_silence_doubles_the_wait_and_costs_a_few_probes_only():
    outbox = Outbox()
    flow = make_flow(0, 64, 32, outbox)
    flow.start(Numbers(0, 100))
    flow.pump(0.0)
    outbox.packets.clear()
    now = 0.0
    for _ in range(100_000):
        now += 0.001
        flow.on_timer(now)
        if now > 60:
            break
    assert len(outbox.packets) <= 4 * 70


@pytest.mark.parametrize(("window", "probes"), [(1, 1), (4, 1), (12, 3), (32, 4)])
def test_after_silence_a_quarter_of_what_is_under_way_goes_again_at_most(window, probes):
    outbox = Outbox()
    flow = make_flow(0, 64, window, outbox)
    flow.start(Numbers(0, 100))
    flow.pump(0.0)
    outbox.packets.clear()
    flow.on_timer(RttEstimator.INITIAL)
    assert len(outbox.packets) == flow.retransmits == probes


def test_a_flow_says_when_its_numbers_are_used_up():
    flow = make_flow(0, 2, 1, Outbox())
    flow.start(Numbers(0, 1))
    with pytest.raises(RoundsExhausted, match=r"has \d+ chunk numbers left.*needs a new epoch"):
        flow.start(type("Huge", (), {"count": 2 * ROUNDS})())


def test_the_pacer_lets_a_burst_go_and_then_the_rate():
    pacer = Pacer(rate_mbps=1.0, wire_bytes=125, now=0.0)  # 1000 packets a second
    assert pacer.allowance(0.0) == Pacer.BURST_PACKETS
    pacer.spend(Pacer.BURST_PACKETS)
    assert pacer.allowance(0.0) == 0
    assert 0 < pacer.wait() <= 0.004
    assert pacer.allowance(0.010) == 10


def test_a_tree_gets_its_share_of_the_rate_and_no_more():
    whole, third = (Pacer(rate_mbps=10.0, wire_bytes=125, now=0.0, share=share) for share in (1.0, 0.3))
    for pacer in (whole, third):
        pacer.spend(pacer.allowance(0.0))
    sent = {whole: 0, third: 0}
    for millisecond in range(1, 1001):
        for pacer in sent:
            count = pacer.allowance(millisecond / 1000)
            pacer.spend(count)
            sent[pacer] += count
    assert abs(sent[whole] - 10_000) <= 1
    assert abs(sent[third] - 3_000) <= 1


def test_a_single_chunk_does_not_wait_for_the_pacer_but_the_next_ones_pay_for_it():
    outbox = Outbox()
    flow = make_flow(0, 64, 32, outbox, pacer=Pacer(rate_mbps=0.1, wire_bytes=125, now=0.0))  # 100 a second
    flow.start(Numbers(0, 20))
    flow.pump(0.0)
    assert len(outbox.packets) == Pacer.BURST_PACKETS
    assert flow.next_turn(0.0) <= 0.041  # a quarter of a burst
    for now in (0.021, 0.041):
        flow.pump(now)
    assert len(outbox.packets) == 20
    for chunk in range(20):
        feed(flow, result(flow, chunk, 64), now=0.041)
    assert flow.done

    flow.start(Numbers(0, 1))
    assert flow.pump(0.041) == 1
    feed(flow, result(flow, 20, 64), now=0.042)
    flow.start(Numbers(0, 5))
    assert flow.pump(0.052) == 0
    assert flow.pump(0.062) == 1
