# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""However a connection to a switch ends, the controller lives on, says so, and connects again."""

from __future__ import annotations

import asyncio

import finsy as fy
import grpc
import pytest

from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.switches import session
from netfold.controller.switches.finsy_adapter import FinsyConnection
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.topologies.generators import single_switch
from tests.controller.deployment import Deployment, ready
from tests.controller.world import job_file


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE], ids=lambda c: c.name
)
async def test_a_switch_that_goes_away_while_it_tells_its_ports(tmp_path, code):
    async with ready(single_switch(2), tmp_path) as deployment:
        switch, health = deployment.switches["s1"], deployment.controller.switches.fleet.health("s1")
        switch.gnmi.code, asked = code, switch.gnmi.asked
        await switch.drop_connections()
        await deployment.until(lambda: switch.gnmi.asked > asked + 1, "it is asked again")
        assert not health.ready
        await deployment.until(lambda: code.name in health.error, "the reason is told")
        switch.gnmi.code = grpc.StatusCode.UNIMPLEMENTED
        await deployment.settled_exactly()


@pytest.mark.parametrize(
    "error",
    [
        AssertionError(),
        RuntimeError("EOF"),
        asyncio.InvalidStateError("it is over"),
        asyncio.CancelledError(),
    ],
    ids=repr,
)
async def test_whatever_a_connection_meets(tmp_path, monkeypatch, error):
    """Its client asserts, and is canceled from below, when the channel closes under it."""
    connect, errors = fy.Switch.__aenter__, [error]

    async def meets(self):
        if errors:
            raise errors.pop()
        return await connect(self)

    async with ready(single_switch(2), tmp_path) as deployment:
        monkeypatch.setattr(fy.Switch, "__aenter__", meets)
        await deployment.switches["s1"].drop_connections()
        await deployment.until(lambda: not errors, "met")
        await deployment.settled_exactly()


async def test_a_handshake_without_an_answer_is_tried_again(tmp_path, monkeypatch):
    """The switch is back before the deadline of a connection, and knows nothing of what was asked."""
    monkeypatch.setattr(session, "PUSH_FACTOR", 3000.0)
    async with ready(single_switch(2), tmp_path, rpc_timeout_s=0.3) as deployment:
        switch, health = deployment.switches["s1"], deployment.controller.switches.fleet.health("s1")
        switch.mute = True
        await switch.drop_connections()
        await deployment.until(lambda: switch.unanswered > 0, "asked")
        await deployment.until(lambda: "did not answer" in health.error, "the reason is told")
        switch.mute = False
        await deployment.settled_exactly()


async def test_a_push_may_take_longer_than_the_library_gives_a_call(tmp_path, monkeypatch):
    """finsy's ten seconds for every call were less than the thirty that a push has."""
    monkeypatch.setattr("finsy.p4client._DEFAULT_RPC_TIMEOUT", 0.1)
    async with ready(single_switch(2), tmp_path, rpc_timeout_s=2.0) as deployment:
        switch = deployment.switches["s1"]
        pushes, switch.push_lasts_s = switch.pushes, 0.5
        await switch.restart()
        await deployment.until(lambda: switch.pushes > pushes, "pushed")
        await deployment.settled()
        assert switch.pushes == pushes + 1
        deployment.assert_exact()


async def test_a_call_whose_connection_is_given_up(tmp_path):
    """The channel closes under a call of another task, which must learn no more than that the switch is away."""
    async with ready(single_switch(2), tmp_path) as deployment:
        switch, kept = deployment.switches["s1"], deployment.controller.switches.fleet.sessions["s1"]
        switch.hangs.set()
        asked = switch.reads
        call = asyncio.create_task(kept.read_counters([0]))
        await deployment.until(lambda: switch.reads > asked, "asked")
        switch.end_streams()
        with pytest.raises(SwitchUnreachableError, match="switch s1: its counters cannot be read"):
            await call
        switch.hangs.clear()
        await deployment.settled()


async def test_a_write_on_a_channel_that_closed_before_it_is_a_lost_connection(tmp_path, monkeypatch, caplog):
    """A switch that dies between two calls: the second one finds finsy's client closed, which is no fault of ours."""
    whole = FinsyConnection.write

    async def write(self, batch):
        monkeypatch.setattr(FinsyConnection, "write", whole)
        self._switch._p4client._stub = None  # as after its close, of which the session has yet to learn
        await whole(self, batch)

    async with ready(single_switch(2), tmp_path) as deployment:
        monkeypatch.setattr(FinsyConnection, "write", write)
        await deployment.run(job_file("a", 1, 2))
        await deployment.settled_exactly()
    assert FinsyConnection.write is whole
    assert not [r for r in caplog.records if r.exc_info and r.levelname in ("ERROR", "CRITICAL")]


async def test_packets_that_wait_for_each_other_lose_no_connection(tmp_path):
    """A second write to a stream, before the first is over, ends the stream in grpc.aio."""
    async with ready(single_switch(2), tmp_path) as deployment:
        received = []
        deployment.switches["s1"].on_packet_out = received.append
        session = deployment.controller.switches.fleet.sessions["s1"]
        await asyncio.gather(*(session.packet_out(bytes(9000)) for _ in range(300)))
        assert session.health.ready
        while len(received) < 300:
            await asyncio.sleep(0)


def test_a_switch_at_a_wrong_port_is_named_with_its_address_and_error(tmp_path, caplog):
    """A refusal is the first thing that an operator reads of it; the log has its first failure alone, not each try."""

    async def scenario():
        deployment = Deployment(single_switch(2), tmp_path, timeouts=ControllerTimeouts(start=1.0))
        switch = deployment.switches["s1"]
        await switch.start()
        await switch.stop()
        tries = []
        connect = FinsyConnection.open

        async def open_counted(self):
            tries.append(self)
            await connect(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FinsyConnection, "open", open_counted)
            deployment.start()
            try:
                with pytest.raises(RefusedError) as refused:
                    await deployment.controller.requests.submit(job_file("a", 1, 2), queue=False)
                await deployment.until(lambda: len(tries) > 2, "tried again")
            finally:
                await deployment.kill()
        return switch.address, str(refused.value)

    address, refusal = asyncio.run(scenario())
    down = f"s1 ({address}: no connection: Connection refused)"
    assert refusal == f"no path without failed or withdrawn elements from h1 to h2: {down}"
    [warning] = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert warning.startswith(f"s1 ({address}): no connection: ")
