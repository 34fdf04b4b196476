# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""C and Python agree: each structure that both use is the same, field by field, and so is each enumeration."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from softswitch.build import capi
from softswitch.engine import abi

from netfold.simulator.flow import native as flow
from netfold.simulator.packet import native as packet
from netfold.traffic.agent import messages
from netfold.traffic.congestion import Congestion
from netfold.traffic.engine import blocks, call_log, engine
from netfold.traffic.roce import worker as roce
from tests.traffic import cores, test_codec, test_congestion

ROOT = Path(__file__).parents[2]
SHARED = {
    "traffic/engine/session/core.h": {
        "nf_tree_spec": engine.TreeSpec,
        "nf_timing": engine.EngineTiming,
        "nf_assignment": engine.EngineAssignment,
        "nf_request": engine.Request,
        "nf_outcome": engine.CallOutcome,
        "nf_totals": engine.Totals,
        "nf_tree_report": engine.TreeReport,
        "nf_call_record": call_log.RawCallRecord,
        "nf_out": cores._Out,
    },
    "traffic/engine/congestion/window.h": {
        "nf_ack_summary": test_congestion.AckSummary,
        "nf_window_settings": test_congestion.WindowSettings,
        "nf_window": test_congestion.Control,
        "nf_rtt": test_congestion.Rtt,
    },
    "traffic/engine/numerics/codec.h": {"nf_excess": test_codec._Excess},
    "traffic/agent/messages.h": {
        "na_header": messages.Header,
        "na_hello": messages.HelloMessage,
        "na_assign": messages.AssignMessage,
        "na_departures": messages.DeparturesMessage,
        "na_queue_pair": messages.QueuePair,
        "na_queue_pairs": messages.QueuePairsMessage,
        "na_neighbors": messages.RingNeighbors,
        "na_ring": messages.RingMessage,
        "na_new_epoch": messages.NewEpochMessage,
        "na_report": messages.ReportMessage,
    },
    "traffic/roce/worker.h": {"nr_options": roce._Options},
    "simulator/flow/flow.h": {
        "sf_network": flow._Network,
        "sf_streams": flow._Streams,
        "sf_jobs": flow._Jobs,
    },
    "simulator/packet/packet.h": {"np_tcp_settings": packet.TcpSettings, "np_setup": packet._Setup},
    "softswitch/softswitch/core/control.h": {
        "ss_action_spec": capi.ActionSpec,
        "ss_counter": capi.Counter,
        "ss_replica": capi.ReplicaC,
        "ss_event": capi.EventC,
        "ss_port_stats": capi.PortStats,
        "ss_stats": capi.Stats,
    },
    "softswitch/softswitch/engine/engine.h": {
        "ss_fault_settings": abi.FaultSettings,
        "ss_interface_counters": abi.InterfaceCounters,
        "ss_fault_counters": abi.FaultCounters,
        "ss_engine_port_status": abi.PortStatus,
        "ss_engine_stats": abi.EngineStats,
    },
}

NUMBERS = {
    **{f"NF_{status.name}": int(status) for status in engine.Status},
    **{f"NF_{op.name}": number for op, number in engine._OPS.items()},
    **{f"NF_{dtype.name.upper()}": number for dtype, number in engine._DTYPES.items()},
    **{f"NF_{congestion.name}": number for number, congestion in enumerate(Congestion)},
    **dict(
        zip(
            (
                "NF_BLOCK_FLOAT",
                "NF_FIXED_SCALE",
                "NF_INTEGER",
                "NF_PACKED_HALF",
                "NF_FLOAT32_SUM",
                "NF_ROTATED_QUARTER",
            ),
            engine.SCHEMES.values(),
            strict=True,
        )
    ),
    "NF_TREES_MAX": engine.TREES_MAX,
    "NF_CALL_LOG": call_log.CALLS_MAX,
    **{f"NF_{member.name}": int(member) for member in (*call_log.CallKind, *blocks.CallForm)},
    **{f"CALL_{name.upper().replace('-', '')}": number for number, name in enumerate(call_log._STATES)},
}
"""Constants of the engine that Python states, by their names in C."""


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
    includes = f"-I{ROOT / 'softswitch/softswitch/runtime'}"
    done = subprocess.run(
        ["gcc", "-std=gnu11", includes, "-o", program, source],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert subprocess.check_output([program], text=True, timeout=60).splitlines() == expected


def test_constants_of_c_and_python_are_the_same(tmp_path):
    source, program = tmp_path / "numbers.c", tmp_path / "numbers"
    prints = "".join(f'printf("{name} %d\\n", (int){name});' for name in NUMBERS)
    header = ROOT / "traffic/engine/session/state.h"
    source.write_text(f'#include <stdio.h>\n#include "{header}"\nint main(void) {{ {prints} }}\n')
    subprocess.run(["gcc", "-std=gnu11", "-o", program, source], check=True, timeout=60)
    found = dict(line.split() for line in subprocess.check_output([program], text=True).splitlines())
    assert {name: int(value) for name, value in found.items()} == NUMBERS


def test_messages_of_agents_have_the_same_numbers_in_c_and_python(tmp_path):
    source, program = tmp_path / "numbers.c", tmp_path / "numbers"
    types = {f"NA_{kind.name}": int(kind) for kind in messages.MessageType} | {
        "NA_VERSION": messages.VERSION,
        "NA_BODY_BYTES": messages.BODY_BYTES,
        "NA_RINGS_MAX": messages.RINGS_MAX,
        "NA_HOSTS_BYTES": messages.HOSTS_BYTES,
        "NA_CALLS_MAX": messages.CALLS_MAX,
    }
    prints = "".join(f'printf("{name} %d\\n", (int){name});' for name in types)
    header = ROOT / "traffic/agent/messages.h"
    source.write_text(f'#include <stdio.h>\n#include "{header}"\nint main(void) {{ {prints} }}\n')
    subprocess.run(["gcc", "-std=gnu11", "-o", program, source], check=True, timeout=60)
    found = dict(line.split() for line in subprocess.check_output([program], text=True).splitlines())
    assert {name: int(value) for name, value in found.items()} == types
