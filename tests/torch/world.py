# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks of a process group `netfold` on this machine: each a process, told by NETFOLD_HOST which host it plays. Their
controller is a small one of the tests', the root of each job a parameter server on loopback."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.job_token import job_token
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer

LANES, SLOTS = 64, 64
SERVER = "127.80.0.254"
PORT = 61610
TREE = 7
DEADLINE_S = 120.0
GROUP_TIMEOUT_S = 60.0


def address(host: str) -> str:
    return f"127.80.0.{int(host[1:])}"


class Controller(rpc.ControllerServicer):
    """Admits jobs, each with a tree of its own, assigns members their parts, and ends a job when a member is lost.
    `start_root` starts the root of a job's tree."""

    # ruff: noqa: N802 (the proto's names)

    def __init__(self, hosts: Sequence[str], start_root: Callable[[int, Sequence[str]], None]) -> None:
        self.hosts = hosts
        self.jobs: list[dict[str, Any]] = []
        self.refuse = ""
        self.are_links_full = False
        """Each job takes all of its hosts' links."""
        self.has_leases = False
        """The job of a silent member ends by `expire_leases`, not at once."""
        self.has_targets = True
        self.on_submit: Callable[[], None] = lambda: None
        """Called when a job is there, before its submitter gets the answer, which is lost if it raises."""
        self._start_root = start_root
        self._requests: set[str] = set()
        self._ended: dict[str, str] = {}  # reasons
        self.calls: dict[tuple[str, str], int] = {}
        """The number of calls of each member that has left."""
        self._connected: set[tuple[str, str]] = set()
        self._silent: dict[str, str] = {}  # jobs with a lease that is to expire: reasons
        self._queued: set[tuple[str, str]] = set()  # members that wait
        self._changed = threading.Condition()

    def ListHosts(self, request: pb.ListHostsRequest, context: Any) -> pb.ListHostsResponse:
        return pb.ListHostsResponse(hosts=[pb.Host(name=h, address=address(h)) for h in self.hosts])

    def SubmitJob(self, request: pb.SubmitJobRequest, context: Any) -> pb.Job:
        if self.refuse:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, self.refuse)
        job = json.loads(request.spec_yaml)
        with self._changed:
            blocker = self._blocker(job)
            if blocker and not request.queue:
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"job {blocker} takes all of the links")
            if request.request_id not in self._requests:
                self._start_root(len(self.jobs), job["workers"])
                self.jobs.append(job)
                self._requests.add(request.request_id)
        self.on_submit()
        return pb.Job(name=job["name"], state=pb.QUEUED if blocker else pb.RUNNING)

    def _blocker(self, job: Mapping[str, Any]) -> str:
        """An earlier job that leaves nothing of a link for this one; "": none."""
        for other in self.jobs if self.are_links_full else []:
            if other is job:
                break
            workers, name = other["workers"], other["name"]
            has_ended = name in self._ended or all((name, worker) in self.calls for worker in workers)
            if not has_ended and set(workers) & set(job["workers"]):
                return str(name)
        return ""

    def await_queued(self, members: int, timeout: float = 200.0) -> list[str]:
        """Hosts of the members that wait in the queue, as soon as there are so many, or after `timeout`."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._queued) >= members, timeout)
            return sorted(host for _, host in self._queued)

    def expire_leases(self, timeout: float = 200.0) -> None:
        """Waits until a member is silent, and ends the jobs of all that are."""
        with self._changed:
            assert self._changed.wait_for(lambda: bool(self._silent), timeout), "no member is silent"
        for job, reason in list(self._silent.items()):
            self._end(job, reason)

    def GetJob(self, request: pb.JobName, context: Any) -> pb.Job:
        with self._changed:
            job = next((job for job in self.jobs if job["name"] == request.name), None)
            if job is None:
                context.abort(grpc.StatusCode.NOT_FOUND, f"there is no job '{request.name}'")
            members = [
                pb.Member(host=host, connected=(request.name, host) in self._connected)
                for host in job["workers"]
            ]
            return pb.Job(name=request.name, state=self._state(job), members=members)

    def _state(self, job: Mapping[str, Any]) -> pb.JobState:
        if job["name"] in self._ended:
            return pb.CANCELED
        if all((job["name"], host) in self.calls for host in job["workers"]):
            return pb.DONE
        return pb.QUEUED if self._blocker(job) else pb.RUNNING

    def live(self) -> list[str]:
        """Jobs that have not ended."""
        with self._changed:
            return [job["name"] for job in self.jobs if self._state(job) in (pb.QUEUED, pb.RUNNING)]

    def await_end(self, job: str, timeout: float = 30.0) -> bool:
        """Whether the job ends within `timeout`."""
        with self._changed:
            return self._changed.wait_for(lambda: job not in self.live(), timeout)

    def reason(self, job: str) -> str:
        """Why it has ended; "": it has not, or its members have left."""
        return self._ended.get(job, "")

    def CancelJob(self, request: pb.CancelJobRequest, context: Any) -> pb.Job:
        self._end(request.name, f"canceled by {request.canceled_by}")
        return pb.Job(name=request.name, state=pb.CANCELED)

    def end_all(self, reason: str) -> None:
        for job in self.jobs:
            self._end(job["name"], reason)

    def _end(self, job: str, reason: str) -> None:
        with self._changed:
            self._ended.setdefault(job, reason)
            self._changed.notify_all()

    def JoinJob(self, requests: Any, context: Any) -> Iterator[pb.ControllerUpdate]:
        first = next(requests)
        number = [job["name"] for job in self.jobs].index(first.job)
        workers = self.jobs[number]["workers"]
        rank = workers.index(first.host)
        tree = pb.TreeAssignment(
            tree=TREE + number,
            share=1.0,
            slots=SLOTS,
            window=SLOTS // 2,
            child=rank,
            destination=SERVER,
        )
        is_elastic = self.jobs[number].get("on_worker_loss") == "continue"
        has_targets = self.has_targets and not is_elastic
        mode = self.jobs[number].get("numerics", {}).get("mode", "block")
        with self._changed:
            self._connected.add((first.job, first.host))
        yield pb.ControllerUpdate(lease_ms=1000)
        self._await_links(number, first)
        yield pb.ControllerUpdate(
            lease_ms=1000,
            assignment=pb.Assignment(
                job=first.job, epoch=1, udp_port=PORT + number, lanes=LANES, rank=rank, workers=len(workers),
                trees=[tree], numerics=pb.Numerics(mode=mode),
                targets=pb.TARGETS_ON if has_targets else pb.TARGETS_OFF,
            ),
        )  # fmt: skip
        threading.Thread(target=self._receive, args=(requests, first.job, first.host), daemon=True).start()
        with self._changed:
            self._changed.wait_for(lambda: first.job in self._ended or (first.job, first.host) in self.calls)
        if first.job in self._ended:
            yield pb.ControllerUpdate(ended=pb.JobEnded(state=pb.FAILED, reason=self._ended[first.job]))

    def _await_links(self, number: int, member: pb.MemberUpdate) -> None:
        job, key = self.jobs[number], (member.job, member.host)
        with self._changed:
            if self._blocker(job):
                self._queued.add(key)
                self._changed.notify_all()
                self._changed.wait_for(lambda: member.job in self._ended or not self._blocker(job))
                self._queued.remove(key)

    def _receive(self, requests: Any, job: str, host: str) -> None:
        try:
            for update in requests:
                if update.leave:
                    with self._changed:
                        self.calls[job, host] = update.report.next_call
                        self._changed.notify_all()
                    return
        except grpc.RpcError:
            pass
        with self._changed:
            self._connected.discard((job, host))
        reason = f"worker {host} is silent"
        if self.has_leases:
            with self._changed:
                self._silent.setdefault(job, reason)
                self._changed.notify_all()
        else:
            self._end(job, reason)


class Fabric:
    """A controller, and a root for each job on these hosts. `environment` leads a program to them."""

    def __init__(self, hosts: Sequence[str], folder: Path) -> None:
        self.controller = Controller(hosts, self._start_root)
        self._server = grpc.server(ThreadPoolExecutor(32))
        rpc.add_ControllerServicer_to_server(self.controller, self._server)
        self.environment = {"NETFOLD_CONTROLLER": f"unix:{folder}/c", "TMPDIR": str(folder)}
        self._server.add_insecure_port(self.environment["NETFOLD_CONTROLLER"])
        self._server.start()
        self._roots: list[tuple[ParameterServer, threading.Thread]] = []

    def submit(self, job: str, hosts: Sequence[str]) -> dict[str, str]:
        """Submit a job as a scheduler does. The environment leads a program to the controller, and gives it the job."""
        keys = {"name": job, "workers": list(hosts)}
        self.controller.SubmitJob(pb.SubmitJobRequest(spec_yaml=json.dumps(keys), queue=True), None)
        token = job_token(b"a key", job, "1")
        return {**self.environment, "NETFOLD_JOB": job, "NETFOLD_JOB_TOKEN": token}

    def _start_root(self, number: int, workers: Sequence[str]) -> None:
        tree = TreeAssignment(TREE + number, 1.0, SLOTS, SLOTS // 2, 0, SERVER, tuple(range(len(workers))))
        assignment = Assignment("torch", 1, PORT + number, LANES, 0, len(workers), (tree,))
        root = ParameterServer(assignment, SERVER, [Address(address(h), PORT + number) for h in workers])
        thread = threading.Thread(target=root.serve)
        thread.start()
        self._roots.append((root, thread))

    def stop_controller(self) -> None:
        self._server.stop(0).wait()

    def stop_roots(self) -> None:
        for root, thread in self._roots:
            root.stop()
            thread.join()

    def close(self) -> None:
        self.controller.end_all("the test is over")
        self.stop_roots()
        for root, _ in self._roots:
            root.close()
        self.stop_controller()


def free_port() -> str:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return str(sock.getsockname()[1])


def rank_environment(rank: int, hosts: Sequence[str], port: str) -> dict[str, str]:
    """Returns the environment that torchrun gives a rank, and the host it plays. `hosts`: of each rank."""
    host = hosts[rank]
    return {
        "NETFOLD_HOST": host, "RANK": str(rank), "WORLD_SIZE": str(len(hosts)), "OMP_NUM_THREADS": "1",
        "LOCAL_RANK": str(hosts[:rank].count(host)), "LOCAL_WORLD_SIZE": str(hosts.count(host)),
        "GROUP_RANK": str(list(dict.fromkeys(hosts)).index(host)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
    }  # fmt: skip


def carrier(group: Any = None) -> str:
    """Returns the carrier of the sums of a group, by default the world: netfold or gloo. Called by a rank."""
    from netfold.traffic.pytorch.collectives import collectives_of  # noqa: PLC0415 (it imports torch)

    found = collectives_of(group or _default_group())
    return "gloo" if found is None or found.fallback_reason else "netfold"


def packets() -> int:
    """Packets that this rank's worker has sent; 0: the host's first rank sends for it. Called by a rank."""
    from netfold.traffic.pytorch.collectives import collectives_of  # noqa: PLC0415 (it imports torch)

    found = collectives_of(_default_group())
    assert found is not None
    use = found.session._reducer.network_use()
    return use.packets if use else 0


def _default_group() -> Any:
    import torch.distributed as dist  # noqa: PLC0415

    return dist.group.WORLD


class World:
    """Processes that wait to be told what to do. `hosts`: of each rank."""

    def __init__(
        self,
        hosts: Sequence[str],
        environment: Mapping[str, str],
        backend: str = "netfold",
        timeout: float = 0.0,
    ) -> None:
        context = multiprocessing.get_context("spawn")
        port = free_port()
        self.pipes = []
        self.processes = []
        for rank in range(len(hosts)):
            mine, theirs = context.Pipe()
            own = {**environment, **rank_environment(rank, hosts, port)}
            target = (theirs, own, backend, timeout or GROUP_TIMEOUT_S)
            process = context.Process(target=_serve, args=target, daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def start(self, what: Callable[..., Any], *arguments: Any, ranks: Sequence[int] | None = None) -> None:
        for rank in range(len(self.pipes)) if ranks is None else ranks:
            self.pipes[rank].send((what, arguments))

    def answers(self, ranks: Sequence[int] | None = None) -> list[Any]:
        """Returns the ranks' answers; exceptions as `type: message`."""
        found = []
        for rank in range(len(self.pipes)) if ranks is None else ranks:
            if not self.pipes[rank].poll(DEADLINE_S):
                raise TimeoutError(f"rank {rank} did not answer within {DEADLINE_S:g} s")
            found.append(self.pipes[rank].recv())
        return found

    def run(self, what: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Returns the results of `what(*arguments)` at each rank. Raises AssertionError with the errors of all
        ranks."""
        self.start(what, *arguments)
        answers = self.answers()
        wrong = [f"rank {rank}: {text}" for rank, (good, text) in enumerate(answers) if not good]
        assert not wrong, "\n".join(wrong)
        return [answer for _, answer in answers]

    def close(self) -> None:
        for process, pipe in zip(self.processes, self.pipes, strict=True):
            pipe.close()
            process.kill()
            process.join()


def _serve(pipe: Any, environment: Mapping[str, str], backend: str, timeout: float) -> None:
    os.environ.update(environment)
    import torch  # noqa: PLC0415
    import torch.distributed as dist  # noqa: PLC0415

    torch.set_num_threads(1)
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
    except Exception as error:
        pipe.send((False, f"{type(error).__name__}: {error}"))
        return
    pipe.send((True, None))
    while True:
        try:
            what, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, what(*arguments)))
        except Exception as error:
            pipe.send((False, f"{type(error).__name__}: {error}"))


@contextmanager
def world(
    hosts: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    timeout: float = 0.0,
    backend: str = "netfold",
    *,
    has_targets: bool = True,
) -> Iterator[tuple[World, Fabric]]:
    """All ranks are up."""
    with ExitStack() as stack:
        fabric = Fabric(list(dict.fromkeys(hosts)), folder)
        stack.callback(fabric.close)
        fabric.controller.has_targets = has_targets
        ranks = World(hosts, {**fabric.environment, **(environment or {})}, backend, timeout)
        stack.callback(ranks.close)
        for rank, (good, text) in enumerate(ranks.answers()):
            assert good, f"rank {rank}: {text}"
        yield ranks, fabric
