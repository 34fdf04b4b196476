# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""channels.c and spans.c against their twins in numpy, on whatever may come from the network."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.traffic.errors import CallMismatch
from netfold.traffic.packets.transport import Inbox
from netfold.traffic.packets.wire import packet_bytes
from netfold.traffic.worker import native
from netfold.traffic.worker.call import Gradient
from netfold.traffic.worker.channels import NEVER, Channels, NativeChannels, make_channels
from netfold.traffic.worker.quantize import SharedExponent
from netfold.traffic.worker.work import Filled, FlatWork

LANES, SLOTS, EPOCH, TREE = 4, 8, 3, 9


@pytest.fixture(scope="module")
def code():
    found = native.library()
    if found is None:
        pytest.skip("no C compiler: channels.c cannot be built and compared")
    return found


def twins(code) -> tuple[Channels, Channels]:
    return Channels(SLOTS, LANES, EPOCH, TREE, 1), NativeChannels(code, SLOTS, LANES, EPOCH, TREE, 1)


def state(channels: Channels) -> tuple:
    arrays = (channels.due, channels.busy, channels.sent_at, channels.resent)
    return (*(a.tolist() for a in arrays), channels.rows.records.tobytes())


arrivals = st.lists(
    st.tuples(
        st.sampled_from([0x11, 0x11, 0x11, 0x10, 0x21, 0xFF]),  # version and kind
        st.sampled_from([0, 0x80, 0x40, 0xFF]),  # flags
        st.sampled_from([TREE, TREE, TREE, 8, 65535]),
        st.sampled_from([EPOCH, EPOCH, EPOCH, EPOCH - 1, 4095]),
        st.integers(0, 3) | st.just(2**20 - 1),  # round
        st.integers(0, SLOTS) | st.just(65535),
        st.sampled_from([LANES, LANES, LANES, 5, 0]),
        st.sampled_from([0, 0, 0, 1, -1, -30]),  # bytes more than a packet has
        st.booleans(),  # CE
    ),
    max_size=20,
)


@settings(max_examples=200, deadline=None)
@given(
    arrivals=arrivals,
    sent=st.lists(st.booleans(), min_size=4, max_size=4),
    rounds=st.lists(st.integers(0, 5), min_size=4, max_size=4),
    resent=st.lists(st.booleans(), min_size=4, max_size=4),
    ecn=st.booleans(),
)
def test_both_take_the_same_results(code, arrivals, sent, rounds, resent, ecn):
    pair = twins(code)
    inbox = Inbox(32, LANES, ecn)
    for row, (kind, flags, tree, epoch, round_, slot, lanes, more, marked) in enumerate(arrivals):
        record = inbox.records[row]
        record["version_kind"], record["flags"], record["tree"], record["lanes"] = kind, flags, tree, lanes
        record["tag"], record["slot"], record["exponent"] = epoch << 20 | round_, slot, row
        record["lane"] = np.arange(LANES) - row
        inbox.sizes(row + 1)[row] = packet_bytes(LANES) + more
        inbox._control[row, 16] = 3 if marked else 2
    for channels in pair:
        channels.busy[:] = sent
        channels.due += 4 * np.array(rounds)
        channels.sent_at[:] = [1.0, 2.0, 3.0, 4.0]
        channels.resent[:] = resent
    one, two = (channels.match(inbox, len(arrivals)) for channels in pair)
    for name in ("chunks", "lanes", "exponents", "flags", "taken"):
        a, b = (np.asarray(getattr(found, name)).tolist() for found in (one, two))
        assert a == b, name
    assert state(pair[0]) == state(pair[1])


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_both_send_the_same_packets_and_miss_the_same_ones(code, data):
    pair = twins(code)
    busy = data.draw(st.lists(st.booleans(), min_size=4, max_size=4))
    rounds = data.draw(st.lists(st.integers(0, 5), min_size=4, max_size=4))
    end, highest, room = (data.draw(st.integers(0, 30)) for _ in range(3))
    limit = data.draw(st.sampled_from([0.0, 2.5, NEVER]))
    for channels in pair:
        channels.busy[:] = busy
        channels.due += 4 * np.array(rounds)
        channels.sent_at[:] = [1.0, 2.0, 3.0, 4.0]
    late = [channels.overdue(limit) for channels in pair]
    assert late[0][0].tolist() == late[1][0].tolist()
    assert late[0][1] == late[1][1]
    ready = [channels.ready(end, highest, room) for channels in pair]
    assert ready[0].tolist() == ready[1].tolist()
    count = len(ready[0])
    lanes = np.arange(count * LANES, dtype=np.int32).reshape(count, LANES) - 7
    exponents = np.arange(count, dtype=np.uint8)
    flags = data.draw(st.sampled_from([None, np.full(count, 0x80, np.uint8)]))
    put = [c.put(r, Filled(lanes, exponents, flags)) for c, r in zip(pair, ready, strict=True)]
    assert put[0].tolist() == put[1].tolist()
    assert state(pair[0]) == state(pair[1])


@settings(max_examples=100, deadline=None)
@given(
    dtype=st.sampled_from(["float32", "int32"]),
    size=st.integers(1, 90),
    spans=st.sampled_from([(0.0, 1.0), (0.3, 1.0), (0.0, 0.6)]),
    losses=st.lists(st.booleans(), min_size=200, max_size=200),
    room=st.integers(1, 4),
    allowance=st.integers(0, 4),
    overflow=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_both_carry_a_gradient_the_same_way(
    code, dtype, size, spans, losses, room, allowance, overflow, seed
):
    """Three workers' worth of sums come back, in turns in which some results are lost."""
    rng = np.random.default_rng(seed)
    array = (rng.standard_normal(size) * np.exp(rng.uniform(-80, 80))).astype(np.float32)
    if dtype == "int32":
        array = rng.integers(-(2**31), 2**31, size).astype(np.int32)
    pair, fates = twins(code), iter(losses)
    outputs, gradients, works = [], [], []
    for channels in pair:
        output = array.copy()
        gradient = Gradient(0, output, LANES, SharedExponent())
        gradient.agreed[:] = gradient.exponents.max()  # as after an opening
        first, last = (int(bound * gradient.chunks) for bound in spans)
        work = gradient.works(first, last, SLOTS // 2, 3)
        channels.begin(work, 5)
        channels.due[:] = np.where(channels.due < 1, 8, channels.due + 4)  # 5 ... 8 are the first
        outputs.append(output)
        gradients.append(gradient)
        works.append(work)
    assert isinstance(works[1], FlatWork)
    assert works[1].span() is not None
    inbox, end, highest, turn = Inbox(32, LANES), 5 + works[0].count, 0, 0
    while any(channels.busy.any() or (channels.due < end).any() for channels in pair):
        turn += 1
        assert turn < 2000
        out = [c.emit(end, highest, room, allowance or turn % 2, float(turn)) for c in pair]
        assert out[0].channels.tolist() == out[1].channels.tolist()
        assert out[0][1:] == out[1][1:]
        assert [pair[0].rows.payload(i) for i in range(len(out[0].channels))] == [
            pair[1].rows.payload(i) for i in range(len(out[1].channels))
        ]
        assert state(pair[0]) == state(pair[1])
        highest = out[0].highest
        back = [c for c in np.flatnonzero(pair[0].busy) if not next(fates, False)]
        for row, channel in enumerate(back):
            inbox.records[row] = pair[0].rows.records[channel]
            inbox.records["version_kind"][row] = 0x11
            inbox.records["exponent"][row] += 1  # another worker's is larger
            inbox.records["flags"][row] = 0x80 * (overflow and dtype == "int32" and turn % 3 == 0)
        inbox.sizes(len(back))[:] = packet_bytes(LANES)
        taken = [c.take(inbox, len(back)) for c in pair]
        assert taken[0] == taken[1]
        assert taken[0].results == len(back)
    assert outputs[0].tobytes() == outputs[1].tobytes()
    for name in ("agreed", "overflowed"):
        assert getattr(gradients[0], name).tolist() == getattr(gradients[1], name).tolist()


def test_a_sum_of_floats_that_overflowed_at_a_scale_that_rules_it_out_is_refused(code):
    for channels in twins(code):
        gradient = Gradient(0, np.ones(8, np.float32), LANES, SharedExponent())
        gradient.agreed[:] = gradient.exponents
        channels.begin(gradient.works(0, 2, SLOTS // 2, 3), 0)
        channels.emit(2, 0, 4, 4, 0.0)
        inbox = Inbox(32, LANES)
        inbox.records[0] = channels.rows.records[0]
        inbox.records["version_kind"], inbox.records["flags"] = 0x11, 0x80
        inbox.sizes(1)[:] = packet_bytes(LANES)
        with pytest.raises(CallMismatch, match="overflowed at a scale"):
            channels.take(inbox, 1)


def test_without_a_compiler_numpy_does_it_and_a_log_line_says_so(monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(native, "BUILT_IN", tmp_path / "none.so")
    native.library.cache_clear()
    try:
        assert type(make_channels(SLOTS, LANES, EPOCH, TREE, 1)) is Channels
        assert "no C compiler" in caplog.text
    finally:
        native.library.cache_clear()


def test_it_is_built_once_and_appears_whole(tmp_path, code):
    source = tmp_path / "one.c"
    source.write_text("int one(void) { return 1; }\n")
    built = native.build([source], tmp_path / "cache")
    stamp = built.stat().st_mtime_ns
    assert native.build([source], tmp_path / "cache") == built
    assert built.stat().st_mtime_ns == stamp
    source.write_text("int one(void) { return }\n")
    with pytest.raises(subprocess.CalledProcessError):
        native.build([source], tmp_path / "cache")
    assert [p.name for p in Path(tmp_path / "cache").iterdir()] == [built.name]


def test_code_that_another_user_may_have_put_there_is_not_loaded(tmp_path, monkeypatch):
    source, cache = tmp_path / "one.c", tmp_path / "cache"
    source.write_text("int one(void) { return 1; }\n")
    old = os.umask(0o002)
    try:
        built = native.build([source], cache)
    finally:
        os.umask(old)
    code = built.read_bytes()
    assert not built.stat().st_mode & 0o022

    built.write_bytes(b"planted")
    built.chmod(0o720)
    assert native.build([source], cache).read_bytes() == code, "it is built again"
    cache.chmod(0o777)
    native.build([source], cache)
    assert not cache.stat().st_mode & 0o022
    cache.chmod(0o777)
    user = os.geteuid() + 1000
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(PermissionError, match=str(cache)):
        native.build([source], cache)


def test_without_a_home_numpy_does_it_and_a_log_line_says_so(monkeypatch, caplog):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr(native, "BUILT_IN", Path("/nonexistent"))
    native.library.cache_clear()
    try:
        assert native.library() is None
        assert "home directory" in caplog.text
    finally:
        native.library.cache_clear()
