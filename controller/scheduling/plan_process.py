# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Computes plans in a separate process: the event loop never blocks, and a plan that is canceled or late is killed."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import sys
from asyncio.subprocess import PIPE, Process

from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.planning.plan import Plan
from netfold.controller.scheduling import plan_worker
from netfold.controller.scheduling.job_planner import PlanRequest
from netfold.controller.scheduling.plan_worker import LENGTH_BYTES, STOP, Answer, frame
from netfold.topologies.fabric import Fabric

STOPPED_S = 5.0
"""Seconds that the process has to confirm a stop before it is killed."""


class PlannerCrashedError(Exception):
    """The planner has a defect, or its process was killed; the message names the exit status."""


class PlanProcess:
    """Computes one plan at a time. The process starts with the first plan (or with `start`), and again if it has
    died."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._process: Process | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._is_closed = False

    async def start(self) -> None:
        await self._running()

    async def close(self) -> None:
        """End the process for good. A plan then waits until it is canceled: its controller does not lead any more, and
        ServiceProxy makes the call again of the next service."""
        self._is_closed = True
        await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def plan(self, request: PlanRequest) -> Plan:
        """Compute a plan; a cancellation stops the work. Raises RefusedError and PlannerCrashedError."""
        if (
            self._stopping is not None
        ):  # the task that stopped the last plan was canceled before it had finished
            await asyncio.wait([self._stopping])
            self._stopping = None
        process = await self._running()
        if self._is_closed:
            await self._end()
            await asyncio.Event().wait()
        assert process.stdin is not None
        whole = False
        try:
            process.stdin.write(frame(request))
            await process.stdin.drain()
            answer = await _answer(process)
            whole = True
        except (EOFError, OSError) as error:
            if self._is_closed:
                await asyncio.Event().wait()
            await self._end()
            raise PlannerCrashedError("its process ended") from error
        finally:
            if not whole and self._process is process:
                self._stopping = asyncio.create_task(self._stop(process))
                await asyncio.shield(self._stopping)
        if answer.plan is not None:
            return answer.plan
        if answer.refused:
            raise RefusedError(answer.refused)
        raise PlannerCrashedError(answer.error)

    async def _running(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            # not by -m: a pickled object bears the name of its module
            program = f"from {plan_worker.__name__} import main; main()"
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-c", program, stdin=PIPE, stdout=PIPE, start_new_session=True
            )
            assert self._process.stdin is not None
            self._process.stdin.write(frame(self._fabric))
        return self._process

    async def _stop(self, process: Process) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(frame(STOP))
            async with asyncio.timeout(STOPPED_S):
                await _answer(process)
        except (TimeoutError, EOFError, OSError):
            await self._end()


async def _answer(process: Process) -> Answer:
    """Read an answer from the process. Raises EOFError."""
    assert process.stdout is not None
    length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
    answer = pickle.loads(await process.stdout.readexactly(length))
    assert isinstance(answer, Answer)
    return answer
