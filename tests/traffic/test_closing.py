# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that are closed while a call waits for what only the controller can give."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.traffic.errors import AllReduceTimeoutError, TrafficError, WorkerClosedError
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.worker.worker import Worker
from tests.traffic.scripted_controller import Controller, assignment, controller

HOUR_S = 3600.0
"""The deadline of a call: a worker that waits for it is not promptly closed."""
DEADLINE_S = 60.0


def worker_assignment() -> pb.Assignment:
    message = assignment()
    for part in message.trees:
        part.ClearField("children")
        part.ClearField("sources")
        part.destination = "127.0.0.1"
    return message


def error_of(call: Callable[[], object]) -> tuple[threading.Thread, list[TrafficError]]:
    """The thread that makes the call, and the error that it gets."""
    errors: list[TrafficError] = []

    def run() -> None:
        try:
            call()
        except TrafficError as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, errors


def expect_end(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def await_request(servicer: Controller) -> None:
    while servicer.heard.get(timeout=DEADLINE_S).unusable_epoch != 1:
        pass


def test_a_call_that_waits_for_its_first_assignment_ends_with_its_worker():
    with controller() as (_, target):
        worker = Worker(ControllerMembership(target, "j", "h1"), "127.0.0.1")
        calling, errors = error_of(lambda: worker.all_reduce(np.ones(4, np.float32), HOUR_S))
        closing, _ = error_of(worker.close)
        expect_end(closing, calling)
        assert isinstance(errors[0], WorkerClosedError)


@pytest.mark.parametrize("is_away", [False, True], ids=["with a controller", "without one"])
def test_a_call_that_wants_a_new_epoch_ends_with_its_worker(is_away):
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=worker_assignment(), lease_ms=600_000))
        membership = ControllerMembership(target, "j", "h1")
        membership.wait(DEADLINE_S)
        worker = Worker(membership, "127.0.0.1")
        with pytest.raises(AllReduceTimeoutError, match="missing"):
            worker.all_reduce(np.ones(4, np.float32), 0.2)
        calling, errors = error_of(lambda: worker.all_reduce(np.ones(4, np.float32), HOUR_S))
        await_request(servicer)
        if not is_away:
            expect_closed(worker, calling, errors)
    if is_away:
        expect_closed(worker, calling, errors)


def expect_closed(worker: Worker, calling: threading.Thread, errors: list[TrafficError]) -> None:
    closing, _ = error_of(worker.close)
    expect_end(closing, calling)
    assert isinstance(errors[0], WorkerClosedError)


def test_a_call_in_the_background_that_wants_a_new_epoch_ends_with_its_worker():
    with controller() as (servicer, target):
        message = worker_assignment()
        message.workers_left.CopyFrom(pb.WorkersLeft(hosts=["h2"], epoch=1, call_limit=0))
        servicer.notices.put(pb.ControllerUpdate(assignment=message, lease_ms=600_000))
        worker = Worker(ControllerMembership(target, "j", "h1"), "127.0.0.1")
        handle = worker.submit(np.ones(4, np.float32), timeout=HOUR_S)
        await_request(servicer)
    closing, _ = error_of(worker.close)
    expect_end(closing)
    with pytest.raises(TrafficError):
        handle.result()
