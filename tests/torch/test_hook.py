# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch over netfold, and Gloo as the peer. Each rank is a process of its own, as with torchrun."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import Empty
from typing import Any

import numpy as np
import pytest

from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker
from netfold.traffic.workloads.ring import GlooWorker, RingError
from tests.traffic.serving import serving

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

from netfold.traffic.pytorch.hook import HookState, allreduce_hook  # noqa: E402

WORKERS, LANES, SLOTS, STEPS = 3, 64, 64, 5
SERVER = "127.79.0.254"
PORT = 61600
DEADLINE_S = 90.0
ANSWER_S = 270.0
"""The time of a rank, which imports PyTorch first: on a busy machine that alone takes a minute and more."""


def host(rank: int) -> str:
    return f"127.79.0.{rank + 1}"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind((host(0), 0))
        return int(sock.getsockname()[1])


def assignment(rank: int, children: tuple[int, ...] = ()) -> Assignment:
    tree = TreeAssignment(7, 1.0, SLOTS, SLOTS // 2, rank, SERVER, children)
    return Assignment("torch", 1, PORT, LANES, rank, WORKERS, (tree,))


def parameter_server() -> AbstractContextManager[ParameterServer]:
    reply_to = [Address(host(rank), PORT) for rank in range(WORKERS)]
    return serving(ParameterServer(assignment(0, tuple(range(WORKERS))), SERVER, reply_to))


def on_all_ranks(what: Callable[..., Any], *arguments: Any, workers: int = WORKERS) -> list[Any]:
    """Returns the results of `what(rank, *arguments)` in a process for each rank."""
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    processes = [
        context.Process(target=_answer, args=(answers, what, rank, arguments), daemon=True)
        for rank in range(workers)
    ]
    for process in processes:
        process.start()
    try:
        found = dict(answers.get(timeout=ANSWER_S) for _ in processes)
    except Empty:
        pytest.fail(f"not all ranks answered within {ANSWER_S:.0f} s")
    finally:
        for process in processes:
            process.kill()
            process.join()
    for answer in found.values():
        if isinstance(answer, Exception):
            raise answer
    return [found[rank] for rank in range(workers)]


def _answer(answers: Any, what: Callable[..., Any], rank: int, arguments: tuple[Any, ...]) -> None:
    try:
        answers.put((rank, what(rank, *arguments)))
    except Exception as error:
        answers.put((rank, RuntimeError(f"rank {rank}: {type(error).__name__}: {error}")))


def train(rank: int, gloo_port: int, over_netfold: bool) -> tuple[list[bytes], list[float]]:
    """A small model on data of the rank's own: its parameters at the end, and the losses."""
    torch.set_num_threads(1)
    with GlooWorker([host(0)] * WORKERS, rank, gloo_port, timeout=DEADLINE_S):
        torch.manual_seed(0)  # the same model everywhere
        layers = (torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Linear(50, 3))
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
        worker = Worker(StaticMembership(assignment(rank)), host(rank))
        if over_netfold:
            model.register_comm_hook(HookState(worker, DEADLINE_S), allreduce_hook)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        generator = torch.Generator().manual_seed(rank)
        inputs = torch.randn(64, 20, generator=generator)
        labels = (inputs.sum(1) > 0).long()
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
        worker.close()
        return [p.detach().numpy().tobytes() for p in model.parameters()], losses


def test_ddp_trains_over_netfold_as_over_gloo():
    with parameter_server():
        netfold = on_all_ranks(train, free_port(), True)
    gloo = on_all_ranks(train, free_port(), False)
    for parameters, _ in netfold[1:]:
        assert parameters == netfold[0][0]
    for (mine, losses), (theirs, expected) in zip(netfold, gloo, strict=True):
        assert losses[-1] < losses[0]
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(
                np.frombuffer(a, np.float32), np.frombuffer(b, np.float32), rtol=1e-4, atol=1e-6
            )


def backward_with_an_infinity(rank: int, gloo_port: int) -> bytes:
    torch.set_num_threads(1)
    hosts = [host(other) for other in range(WORKERS)]
    with (
        GlooWorker(hosts, rank, gloo_port, timeout=DEADLINE_S),
        Worker(StaticMembership(assignment(rank)), host(rank)) as one,
    ):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        model.register_comm_hook(HookState(one), allreduce_hook)
        model(torch.full((1, 2), float("inf") if rank == 1 else 1.0)).sum().backward()
        return bytes(model.module.weight.grad.numpy().tobytes())


def test_an_infinite_gradient_of_one_rank_reaches_all_ranks():
    with parameter_server():
        answers = on_all_ranks(backward_with_an_infinity, free_port())
    assert np.frombuffer(answers[0], np.float32).tolist() == [np.inf, np.inf]
    assert set(answers) == {answers[0]}


def backward_without_a_root(rank: int, gloo_port: int) -> str:
    torch.set_num_threads(1)
    with GlooWorker([host(0)], 0, gloo_port, timeout=DEADLINE_S):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        with Worker(StaticMembership(assignment(0)), host(0)) as worker:
            model.register_comm_hook(HookState(worker, 0.5), allreduce_hook)
            try:
                model(torch.ones(1, 2)).sum().backward()
            except Exception as error:
                return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def test_an_error_of_the_all_reduce_comes_out_of_backward_in_its_words():
    (said,) = on_all_ranks(backward_without_a_root, free_port(), workers=1)
    assert (
        "DistBackendError: netfold: communication hook: job torch, job epoch 1, rank 0: timeout before the results; "
        "missing" in said
    )


def ring_over_gloo(rank: int, gloo_port: int) -> bytes:
    with GlooWorker([host(0)] * WORKERS, rank, gloo_port, timeout=DEADLINE_S) as ring:
        array = np.arange(1000, dtype=np.float32) * (rank + 1)
        ring.all_reduce(array)
        return array.tobytes()


def test_gloo_is_a_peer_with_the_same_interface_as_the_ring():
    expected = (np.arange(1000, dtype=np.float32) * sum(range(WORKERS + 1))).tobytes()
    assert on_all_ranks(ring_over_gloo, free_port()) == [expected] * WORKERS


def alone_in_a_ring_of_two(rank: int, gloo_port: int) -> str:
    try:
        GlooWorker([host(0), host(1)], 0, gloo_port, timeout=1.0)
    except RingError as error:
        return str(error)
    return "nothing was raised"


def test_a_gloo_ring_that_does_not_form_is_an_error_that_says_so():
    (said,) = on_all_ranks(alone_in_a_ring_of_two, free_port(), workers=1)
    assert "gloo" in said
    assert "\n" not in said
