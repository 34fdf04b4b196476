# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of PyTorch's DistributedDataParallel and FSDP2 over netfold, beside Gloo, on the same links in the same run.
Needs root, and PyTorch in .venv-torch; the command itself runs in the main environment.

    python -m netfold.evaluation.speed.torch_ddp [--workers 2,4,8] [--parameters 268000,5000000] [--rate 100]
        [--transports gloo,ring,netfold,netfold-half,netfold-quarter,...] [--parallelism ddp,fsdp,fsdp-prefetch]
        [--layers 2] [--equal-s 20]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from netfold.evaluation.core.command import Integers, Lanes, Words, expect, integers, run_command, words
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.testbed.testbed import Testbed
from netfold.topologies.generators import single_switch

PORT = 29700
STEP_BYTES = 80 << 20
"""Bytes of gradients, for each row; at least four steps."""
PARALLELISMS = ("ddp", "fsdp", "fsdp-prefetch")
TRANSPORTS = ("gloo", "ring", "gloo-fp16", "gloo-powersgd4", "netfold", "netfold-half", "netfold-quarter")
TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class StepRow(Row):
    """`step_ms_...`: of the slowest worker; `exposed_ms`: what compute does not hide of it; `bytes_per_worker`: of a
    step, both directions, with all headers; `..._processor_s`: of a step, of all workers or switches together; `loss`:
    of a model that is trained for `equal_s` seconds, which are `equal_steps` steps of the transport; `identical`: all
    workers have the same parameters at the end."""

    parallelism: str
    transport: str
    workers: int
    parameters: int
    step_ms_p50: float
    step_ms_p90: float
    compute_ms: float
    exposed_ms: float
    bytes_per_worker: float
    worker_processor_s: float
    switch_processor_s: float
    steps: int
    equal_s: float
    equal_steps: int
    loss: float
    identical: bool


@dataclass(frozen=True)
class TorchDdp(Experiment[StepRow]):
    """Steps of DistributedDataParallel and FSDP2 over netfold, beside Gloo. Needs root, and PyTorch in .venv-torch.

    One leaf; torchrun in each host."""

    name = "bench-torch-ddp"
    needs_namespaces = True
    workers: Annotated[Integers, integers("Numbers of workers.")] = Integers((2, 4, 8))
    parameters: Annotated[Integers, integers("Parameters of the models.")] = Integers((268_000, 5_000_000))
    layers: Annotated[int, typer.Option(min=1, help="Square layers of the models.")] = 2
    transports: Annotated[
        Words, words("Transports; ring: Gloo, with the reduce-scatter of a ring for FSDP2.")
    ] = Words(TRANSPORTS)
    parallelism: Annotated[
        Words,
        words(
            "ddp: DistributedDataParallel; fsdp: FSDP2 with every layer sharded; fsdp-prefetch: with "
            "parameters gathered beside other collectives."
        ),
    ] = Words(PARALLELISMS)
    rate_mbps: Annotated[float, typer.Option("--rate", help="Rate of each link, Mbit/s.")] = 100.0
    equal_s: Annotated[
        float, typer.Option("--equal-s", help="Seconds of training before the loss is measured; 0: none.")
    ] = 20.0
    lanes: Lanes = 256
    bucket_mb: Annotated[
        float | None, typer.Option(help="MiB of gradients in a bucket. Default: PyTorch's.")
    ] = None
    target: Annotated[str, typer.Option(help="The switches: softswitch or bmv2.")] = "softswitch"
    queue: Annotated[int, typer.Option(help="Queue of each switch port, in packets.")] = 64

    def __post_init__(self) -> None:
        expect("--transports", self.transports, TRANSPORTS)
        expect("--parallelism", self.parallelism, PARALLELISMS)

    def rows(self, notify: Notify) -> Iterator[StepRow]:
        """Raises RunError, NetworkError."""
        for workers in self.workers:
            yield from self._measure(workers, notify)

    def tables(self, rows: Sequence[StepRow]) -> Iterable[Table]:
        def of_gloo(row: StepRow) -> float | None:
            """Step of Gloo's fastest variant: FSDP2 with or without the prefetch."""
            key = case(row)
            peers = [r.step_ms_p50 for r in rows if r.transport == "gloo" and case(r) == key]
            return row.step_ms_p50 / min(peers) if peers else None

        def case(row: StepRow) -> tuple[bool, int, int]:
            return row.parallelism == "ddp", row.workers, row.parameters

        columns = (
            Column[StepRow]("workers", lambda r: r.workers),
            Column[StepRow]("parameters", lambda r: r.parameters, ","),
            Column[StepRow]("parallelism", lambda r: r.parallelism, is_text=True),
            Column[StepRow]("transport", lambda r: r.transport, is_text=True),
            Column[StepRow]("step p50, ms", lambda r: r.step_ms_p50, ".1f"),
            Column[StepRow]("of Gloo", of_gloo, ".2f"),
            Column[StepRow]("compute, ms", lambda r: r.compute_ms, ".1f"),
            Column[StepRow]("exposed, ms", lambda r: r.exposed_ms, ".1f"),
            Column[StepRow]("MB/step", lambda r: r.bytes_per_worker / 1e6, ".2f"),
            Column[StepRow]("workers' processors, s", lambda r: r.worker_processor_s, ".2f"),
            Column[StepRow]("switch's, s", lambda r: r.switch_processor_s, ".2f"),
            Column[StepRow](f"loss after {self.equal_s:g} s", lambda r: r.loss, ".3f"),
            Column[StepRow]("identical", lambda r: str(r.identical)),
        )
        return [table(f"Training steps, {self.rate_mbps:g} Mbit/s, {self.lanes} lanes", columns, rows)]

    def _measure(self, workers: int, notify: Notify) -> Iterator[StepRow]:
        counts = [min(30, max(4, STEP_BYTES // (4 * n))) for n in self.parameters]
        arguments: list[object] = ["--parameters", *self.parameters, "--steps", *counts]
        arguments += ["--layers", self.layers]
        arguments += ["--transports", *self.transports, "--parallelism", *self.parallelism]
        arguments += ["--equal-s", self.equal_s]
        if self.bucket_mb is not None:
            arguments += ["--bucket-mb", self.bucket_mb]
        fabric = single_switch(workers, rate=self.rate_mbps, queue=self.queue, name=f"leaf-of-{workers}")
        with Testbed(fabric, target=self.target, lanes=self.lanes, on_step=notify) as system:
            hosts = system.workers
            notify(f"{workers} x torchrun")
            switches = [s.pid for s in system.net.switches.values() if s.pid is not None]
            script, own = Path(__file__).with_name("rank.py"), ["--switches", *switches]
            written, seen = system.directory / "ddp" / f"{hosts[0]}.json", 0

            def check() -> None:
                nonlocal seen
                system.check()
                for row in _rows(written)[seen:]:
                    notify(
                        f"{row.parallelism}, {row.transport}, {row.parameters} parameters: {row.step_ms_p50} ms"
                    )
                    seen += 1

            with system.torchrun(
                script, [*arguments, *own], name="ddp", port=PORT, result_option="--out"
            ) as group:
                try:
                    group.wait(TIMEOUT_S, check)
                finally:
                    yield from _rows(written)


def _rows(file: Path) -> list[StepRow]:
    return [StepRow(**row) for row in json.loads(file.read_text())["rows"]] if file.exists() else []


def main() -> None:
    run_command(TorchDdp)
