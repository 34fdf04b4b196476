# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks run: a small one for a moment, and the C programs of the larger ones compile."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from scapy.layers.inet import IP

from netfold.evaluation.core.command import Integers
from netfold.evaluation.core.output import Output, evaluate
from netfold.evaluation.speed import switch_loads, switch_targets
from netfold.evaluation.speed.allreduce import (
    AllReduceRow,
    SizeResult,
    TransportResult,
    break_even,
    summarize,
)
from netfold.evaluation.speed.core_ns import CoreNs
from netfold.evaluation.speed.host_pps import HostPps
from netfold.evaluation.speed.switch_pps import SwitchRow
from netfold.testbed.errors import RunError

STRICT = ["-O2", "-Wall", "-Wextra", "-Werror"]


@pytest.mark.slow
def test_a_small_benchmark_gives_rows(tmp_path: Path):
    output = Output(as_json=True, out=tmp_path)
    plain, own = evaluate(HostPps(Integers([32]), 0.2), output)
    assert plain.over_plain == 1
    assert own.packets_s > plain.packets_s
    assert json.loads((tmp_path / "bench-host-pps.json").read_text())["rows"][0]["lanes"] == 32


@pytest.mark.slow
def test_the_core_is_measured_in_turn_with_another_checkout(tmp_path: Path):
    folder = Path(switch_loads.__file__).resolve().parents[2] / "softswitch"
    rows = evaluate(CoreNs(Integers([64]), rounds=1, against=folder), Output(as_json=True, out=tmp_path))
    assert [row.frames for row in rows] == ["caches", "caches", "memory", "memory"]
    assert [row.revision for row in rows] == ["this", str(folder)] * 2
    assert [row.ratio_to_other for row in rows[1::2]] == [1, 1]
    assert all(min(row.quiet_ns, row.core_ns, row.bare_ns) > 0 for row in rows)


def test_the_cores_of_a_rate_are_its_packets_by_those_of_a_core():
    row = SwitchRow("softswitch", "netfold-256", 1082, 1e6, 2.0, 2.5e6, 70.0, 0)
    packets = 22.6e6  # docs/reference/servers.md
    assert row.cores(200) == pytest.approx(packets / 2.5e6, rel=0.001)


@pytest.mark.parametrize("name", ["forwarder", "workers"])
def test_the_c_programs_compile_without_a_warning(tmp_path: Path, name: str):
    program = switch_targets.compiled(name, tmp_path, STRICT)
    assert subprocess.run([program], capture_output=True, timeout=10, check=False).returncode != 0


@pytest.mark.parametrize("name", ["netfold-64", "roce-64", "router"])
def test_loads_have_a_frame_for_each_host(name: str):
    kind, _, lanes = name.partition("-")
    loads = {"netfold": switch_loads.aggregation, "roce": switch_loads.roce}
    load = loads[kind](int(lanes)) if lanes else switch_loads.router()
    assert load.name == name
    assert len(load.frames) == switch_loads.WORKERS
    assert len({len(frame) for frame in load.frames}) == 1
    assert load.updates


@pytest.mark.parametrize("load", [switch_loads.aggregation(64), switch_loads.roce(64), switch_loads.router()])
def test_frames_of_a_host_may_form_a_run(load: switch_loads.SwitchLoad):
    """They say "do not fragment", as those of a worker's socket: each frame of the benchmark has the same
    identification, and a run takes frames of one identification with that flag alone."""
    assert all(IP(frame[14:]).flags.DF for frame in load.frames)


@pytest.mark.parametrize("bits", [32, 64, 256])
def test_a_load_of_a_bitmap_runs_the_program_of_that_width(bits: int, tmp_path: Path):
    load = switch_loads.bitmap(bits, tmp_path)
    (bitmaps,) = (r for r in load.config.p4info.registers if r.preamble.name.endswith("bitmaps"))
    assert bitmaps.type_spec.bitstring.bit.bitwidth == bits
    assert load.updates
    assert load.name == f"bitmap-{bits}"


def test_a_bitmap_that_is_not_committed_needs_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match=r"bitmap-128.* expected p4c-bm2-ss on PATH"):
        switch_loads.bitmap(128, tmp_path)


def test_an_all_reduce_takes_as_long_as_at_its_slowest_worker():
    def worker(time_us: float, wrong: int) -> dict[str, object]:
        line = {
            "size": 8,
            "count": 2,
            "type": "float32",
            "redop": "sum",
            "time_us": time_us,
            "algbw_gbs": 1.0,
        }
        return {
            "sizes": [{**line, "busbw_gbs": 1.0, "wrong": wrong, "more": 1}],
            "digest": "a",
            "flows": "f",
            "retransmits": 1,
            "allreduce_cpu_s_per_gib": time_us,
            "peak_rss_mib": time_us,
        }

    found = summarize({"h1": worker(2.0, 0), "h2": worker(4.0, 3)})
    assert (found.sizes[0].time_us, found.sizes[0].wrong) == (4.0, 3)
    assert (found.retransmits, found.cpu_s_per_gib, found.peak_rss_mib) == (2, 3.0, 4.0)
    assert found.identical


def all_reduce_row(rate_mbps: float, workers: int, over_ring: float | None) -> AllReduceRow:
    def result(algbw_gbs: float) -> TransportResult:
        size = SizeResult(8, 2, "float32", "sum", 1.0, algbw_gbs, algbw_gbs, 0)
        return TransportResult(
            (size,), identical=True, flows=[], retransmits=0, cpu_s_per_gib=1.0, peak_rss_mib=1.0
        )

    ring = None if over_ring is None else result(1.0)
    return AllReduceRow(rate_mbps, workers, "auto", 256, rate_mbps, 1.0, result(over_ring or 1.0), ring)


def test_break_even_is_the_rate_up_to_which_netfold_wins():
    rows = [
        *(
            all_reduce_row(rate, 2, ratio)
            for rate, ratio in ((1000, 0.9), (100, 2.0), (500, 1.0), (2000, 3.0))
        ),
        all_reduce_row(100, 4, 0.9),
        all_reduce_row(100, 8, None),
    ]
    assert [(b.workers, b.rate_mbps) for b in break_even(rows)] == [(2, 500), (4, None), (8, None)]
