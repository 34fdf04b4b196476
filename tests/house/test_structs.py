# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What C writes into Python's memory has room there: each structure that both know is the same size, field by field."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from netfold.simulator.flow import engine as flow
from netfold.simulator.packet import native as packet
from netfold.softswitch.build import capi
from netfold.softswitch.engine import abi
from netfold.traffic.engine import engine
from netfold.traffic.roce import worker as roce
from tests.traffic import cores, test_codec, test_congestion

ROOT = Path(__file__).parents[2]
SHARED = {
    "traffic/engine/core.h": {
        "nf_tree_spec": engine.TreeSpec,
        "nf_timing": engine.Timing,
        "nf_assignment": engine.Epoch,
        "nf_request": engine.Request,
        "nf_outcome": engine.Outcome,
        "nf_totals": engine.Totals,
        "nf_tree_report": engine.TreeReport,
        "nf_out": cores._Out,
    },
    "traffic/engine/control.h": {
        "nf_came": test_congestion.Came,
        "nf_window": test_congestion.Control,
        "nf_rtt": test_congestion.Rtt,
    },
    "traffic/engine/codec.h": {"nf_excess": test_codec._Excess},
    "traffic/roce/worker.h": {"nr_options": roce._Options},
    "simulator/flow/engine.h": {
        "nf_network": flow._Network,
        "nf_streams": flow._Streams,
        "nf_jobs": flow._Jobs,
    },
    "simulator/packet/packet.h": {"np_tcp_settings": packet.TcpSettings, "np_setup": packet._Setup},
    "softswitch/core/internal.h": {
        "ss_action_spec": capi.ActionSpec,
        "ss_counter": capi.Counter,
        "ss_replica": capi.ReplicaC,
        "ss_event": capi.EventC,
        "ss_port_stats": capi.PortStats,
        "ss_stats": capi.Stats,
    },
    "softswitch/engine/engine.h": {
        "fault_settings": abi.FaultSettings,
        "port_counters": abi.PortCounters,
        "fault_counters": abi.FaultCounters,
        "engine_port_status": abi.PortStatus,
        "engine_stats": abi.EngineStats,
    },
}


@pytest.mark.parametrize("header", SHARED)
def test_structures_of_c_and_python_are_the_same(header, tmp_path):
    lines = [
        "#define _GNU_SOURCE",
        "#include <stddef.h>",
        "#include <stdio.h>",
        f'#include "{ROOT / header}"',
        "int main(void) {",
    ]
    expected = []
    for name, structure in SHARED[header].items():
        lines.append(f'    printf("{name} %zu\\n", sizeof(struct {name}));')
        expected.append(f"{name} {ctypes.sizeof(structure)}")
        for field in (field for field, *_ in structure._fields_ if not field.startswith("_")):
            lines.append(f'    printf("{name}.{field} %zu\\n", offsetof(struct {name}, {field}));')
            expected.append(f"{name}.{field} {getattr(structure, field).offset}")
    source, program = tmp_path / "sizes.c", tmp_path / "sizes"
    source.write_text("\n".join([*lines, "}", ""]))
    folders = [f"-I{ROOT / folder}" for folder in ("softswitch/runtime", "traffic/engine")]
    done = subprocess.run(
        ["gcc", "-std=gnu11", *folders, "-o", program, source],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert subprocess.check_output([program], text=True, timeout=60).splitlines() == expected
