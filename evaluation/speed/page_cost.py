# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The cost of the live page at 500 switches: processor time of the controller's recorder, and of the page in Chromium.

python -m netfold.evaluation.speed.page_cost
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from netfold.controller.core import Controller, Options
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.job_admission import PacketModel
from netfold.controller.recording.history import History
from netfold.controller.recording.lines import starts_segment
from netfold.controller.scheduling.plan_process import PlanProcess
from netfold.controller.service.daemon import fingerprint
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.web.source import SourceError
from netfold.controller.web.web_server import WebOptions, serve
from netfold.evaluation.core.command import run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import fat_tree

COMPILED = Path(__file__).resolve().parents[2] / "p4src" / "compiled"
PIPELINE = Pipeline(COMPILED / "netfold-v1model-32.p4info.txtpb", COMPILED / "netfold-v1model-32.json")
BYTES_A_READING = 1_000_000
MAX_LINES = 10_000
GOALS = {"recorder": 0.02, "page": 0.5}
CHROMIUM_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-quic"]


@dataclass(frozen=True)
class PageCostRow(Row):
    """`part`: of a processor; None: there is no Chromium. `goal` is the project's."""

    process: str
    switches: int
    part: float | None
    goal: float

    @property
    def part_of_goal(self) -> float | None:
        return None if self.part is None else self.part / self.goal


COLUMNS = (
    Column[PageCostRow]("process", lambda r: r.process, is_text=True),
    Column[PageCostRow]("switches", lambda r: r.switches),
    Column[PageCostRow]("of a processor", lambda r: r.part, ".2%"),
    Column[PageCostRow]("of the goal", lambda r: r.part_of_goal, ".2f"),
)


@dataclass(frozen=True)
class PageCost(Experiment[PageCostRow]):
    """Processor time of the recorder and of the page, on a fat-tree with new loads of all links each second."""

    name = "bench-page-cost"
    k: Annotated[int, typer.Option(min=2, help="Ports of a switch: the fabric has 5 k^2 / 4 switches.")] = 20
    updates: Annotated[int, typer.Option(min=10, help="Updates that are measured.")] = 100
    per_second: Annotated[int, typer.Option(min=1, help="Updates a second.")] = 10

    def rows(self, notify: Notify) -> Iterator[PageCostRow]:
        fabric = fat_tree(self.k)
        switches = len(fabric.switches)
        notify(f"recording {switches} switches")
        seconds, lines = asyncio.run(self._record(fabric))
        yield PageCostRow("recorder", switches, seconds / self.updates * self.per_second, GOALS["recorder"])
        notify("drawing them")
        part = asyncio.run(self._draw(lines)) if shutil.which("chromium") else None
        yield PageCostRow("page", switches, part, GOALS["page"])

    def tables(self, rows: Sequence[PageCostRow]) -> Iterable[Table]:
        return [table(f"{self.per_second} updates a second", COLUMNS, rows)]

    async def _record(self, fabric: Fabric) -> tuple[float, list[list[str]]]:
        """Processor seconds of all updates, and the lines of each."""
        with tempfile.TemporaryDirectory(prefix="netfold-") as folder:
            store = Store(Path(folder) / "state.db", fingerprint(fabric))
            try:
                term = store.try_lead()
                assert term is not None
                config = FabricConfig(fabric, addresses(fabric), store.mark)
                options = Options(PacketModel(32), PIPELINE)
                return self._updates(Controller(config, store, options, term, PlanProcess(fabric)))
            finally:
                store.close()

    def _updates(self, controller: Controller) -> tuple[float, list[list[str]]]:
        """The same readings without and with the recorder: the difference is the recorder's."""
        found: list[list[str]] = []
        history, number = controller.recorder.history, 0

        def record() -> None:
            nonlocal number
            controller.recorder.record()
            lines, number = history.read(number, MAX_LINES)
            found.append(lines)

        without = self._read_switches(controller, 0.0, lambda: None)
        record()  # the whole state, once
        return self._read_switches(controller, 1000.0, record) - without, found

    def _read_switches(self, controller: Controller, start_s: float, after: Callable[[], None]) -> float:
        """Processor seconds of all updates. Each second every switch is read once, an equal number of them before each
        update."""
        random = np.random.default_rng(1)
        loads, names = controller.loads, [s.name for s in controller.fabric.switches]
        counts = {n: np.zeros((len(loads.rows_of(n)), 2), dtype=np.int64) for n in names}
        began = 0.0
        for update in range(self.updates + self.per_second):
            if update == self.per_second:
                began = time.process_time()
            for name in names[update % self.per_second :: self.per_second]:
                counts[name] = counts[name] + random.integers(0, BYTES_A_READING, counts[name].shape)
                loads.counted(name, counts[name], time.monotonic() + start_s + update / self.per_second)
            after()
        return time.process_time() - began

    async def _draw(self, updates: list[list[str]]) -> float:
        """The part of a processor that the page's tasks take while the updates arrive."""
        from playwright.async_api import async_playwright  # noqa: PLC0415 (only developers have it)

        source = _Lines()
        source.add(updates[0])
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        serving = asyncio.create_task(serve(source, WebOptions(), ready.set_result, stop))
        try:
            async with async_playwright() as driver:
                browser = await driver.chromium.launch(
                    executable_path=shutil.which("chromium"), args=CHROMIUM_OPTIONS
                )
                page = await browser.new_page()
                await page.goto(await ready)
                await page.wait_for_selector("body[data-drawn]")
                metrics = await page.context.new_cdp_session(page)
                await metrics.send("Performance.enable")
                before, started = await _task_s(metrics), time.monotonic()
                for lines in updates[1:]:
                    source.add(lines)
                    await asyncio.sleep(1 / self.per_second)  # the rate that is measured
                part = (await _task_s(metrics) - before) / (time.monotonic() - started)
                await browser.close()
                return part
        finally:
            stop.set()
            await serving


async def _task_s(metrics: Any) -> float:
    """Seconds of the page's main thread in tasks."""
    found = await metrics.send("Performance.getMetrics")
    return float(next(m["value"] for m in found["metrics"] if m["name"] == "TaskDuration"))


class _Lines:
    """A source whose lines are given."""

    is_live = True

    def __init__(self) -> None:
        self.history = History()

    def add(self, lines: list[str]) -> None:
        for line in lines:
            if starts_segment(line):
                self.history.start_segment([line])
            else:
                self.history.append([line])

    async def run(self) -> None:
        """The benchmark adds lines."""

    async def explain(self, job: str) -> list[str]:
        raise SourceError("a benchmark has no jobs")


if __name__ == "__main__":
    run_command(PageCost)
