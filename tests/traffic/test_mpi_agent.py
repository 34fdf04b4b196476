# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The agent of an MPI rank: a rank that is lost, or that cannot enter an epoch, ends the job of all ranks."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.connection import connection
from netfold.traffic.agent.messages import MessageType
from netfold.traffic.agent.worker_stream import WorkerStream
from netfold.traffic.membership.host import MemberHost
from netfold.traffic.membership.job_options import JobOptions
from netfold.traffic.mpi import agent
from netfold.traffic.packets.job_port import EpochSockets
from netfold.traffic.packets.transport import TransportError
from tests.traffic.scripted_controller import assignment, controller

DEADLINE_S = 60.0
LEASE_MS = 300


class Rank:
    """The rank's end of the stream; `canceled`: why the agent has canceled the job."""

    def __init__(self, stream: socket.socket, canceled: list[str], run: threading.Thread) -> None:
        self._stream = WorkerStream(stream)
        self._run = run
        self.canceled = canceled

    def send(self, kind: MessageType, text: str = "") -> None:
        self._stream.send_text(kind, text)

    def receive(self, kind: MessageType) -> str:
        """The text of the next message of this type."""
        while True:
            message = self._stream.receive(DEADLINE_S)
            assert message is not None, f"the agent has not sent {kind.name}"
            if message.kind is kind:
                return message.text

    def expect_end(self) -> None:
        self._run.join(DEADLINE_S)
        assert not self._run.is_alive(), "the agent waits on"


@contextmanager
def prepared(monkeypatch: pytest.MonkeyPatch, lease_ms: int, joins_after_s: float = 0.0) -> Iterator[Rank]:
    """A rank of a job that has an assignment for it, which the agent has asked to close its sockets."""
    canceled: list[str] = []
    monkeypatch.setattr(agent, "cancel_job", lambda where, name, reason, seconds: canceled.append(reason))
    with controller() as (servicer, target):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.settimeout(DEADLINE_S)
        with ours, theirs:
            member = agent.MemberAgent(
                theirs, connection(target), MemberHost("h1", "127.0.0.1"), JobOptions(lease_ms=lease_ms)
            )
            run = threading.Thread(target=member.run, daemon=True)
            run.start()
            rank = Rank(ours, canceled, run)
            servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=60))
            time.sleep(joins_after_s)  # nothing else passes while a rank waits for others
            rank.send(MessageType.JOIN, "j")
            rank.receive(MessageType.PREPARE)
            yield rank
            ours.close()
            rank.expect_end()


def test_a_rank_that_is_stopped_as_an_epoch_changes_is_lost(monkeypatch):
    with prepared(monkeypatch, LEASE_MS) as rank:
        rank.expect_end()
        assert rank.canceled == ["the MPI process on h1 is silent for 0.3 s"]


def test_a_rank_that_waits_for_others_before_it_joins_has_no_lease_yet(monkeypatch):
    """The ranks of a job start at different times on a busy machine."""
    with prepared(monkeypatch, LEASE_MS, joins_after_s=3 * LEASE_MS / 1000) as rank:
        rank.expect_end()
        assert rank.canceled == ["the MPI process on h1 is silent for 0.3 s"], (
            "it joined, and was silent then"
        )


def test_a_rank_whose_sockets_cannot_be_opened_ends_the_job(monkeypatch):
    def refuse(*_: object) -> list[int]:
        raise TransportError(errno.EADDRINUSE, "port 61440 of 127.0.0.1 is in use")

    monkeypatch.setattr(EpochSockets, "open", refuse)
    with prepared(monkeypatch, 60_000) as rank:
        rank.send(MessageType.READY)
        assert "port 61440 of 127.0.0.1 is in use" in rank.receive(MessageType.ENDED)
        rank.expect_end()
        assert ["port 61440 of 127.0.0.1 is in use" in reason for reason in rank.canceled] == [True]
