# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Flows on one shared link, for ns-3 and for the packet level. `python -m tests.simulator.ns3_cases` runs ns-3 and
writes what it says to ns3_reference.json."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
REFERENCE = FOLDER / "ns3_reference.json"
TIMEOUT_S = 1800


def cases() -> list[dict[str, Any]]:
    """Two of a data center, and one of a wide area, where DCTCP has no place."""
    found = []
    for transport in ("reno", "cubic", "dctcp"):
        rng = random.Random(7)
        mixed = [[round(rng.uniform(0, 0.02), 6), round(70_000 * 70 ** rng.random())] for _ in range(14)]
        together = [[round(0.0002 * i, 6), 4_000_000] for i in range(8)]
        center = {"least_timeout_s": 0.005, "first_timeout_s": 0.01, "ack_delay_s": 0.001}
        rack = {
            **center,
            "rate_bps": 10**9,
            "access_bps": 10**10,
            "delay_s": 2e-5,
            "queue_packets": 250 if transport == "dctcp" else 1000,
            "marking_packets": 30,
        }
        fast = {
            **center,
            "rate_bps": 10**10,
            "access_bps": 10**10,
            "delay_s": 4e-5,
            "queue_packets": 400 if transport == "dctcp" else 1000,
            "marking_packets": 65,
        }
        wide = {
            "least_timeout_s": 0.2,
            "first_timeout_s": 1.0,
            "ack_delay_s": 0.2,
            "rate_bps": 10**8,
            "access_bps": 10**9,
            "delay_s": 5e-3,
            "queue_packets": 500,
            "marking_packets": 0,
        }
        found.append({"name": "mixed sizes, 1 Gbit/s", "transport": transport, **rack, "flows": mixed})
        found.append({"name": "eight of 4 MB, 10 Gbit/s", "transport": transport, **fast, "flows": together})
        if transport != "dctcp":
            long = [[0.1 * i, 5_000_000] for i in range(5)]
            found.append({"name": "wide area, 100 Mbit/s", "transport": transport, **wide, "flows": long})
    return [{**case, "segment_bytes": 1448, "until_s": 30.0} for case in found]


def ns3_is_here() -> bool:
    return all(importlib.util.find_spec(name) for name in ("ns", "cppyy"))


def ask_ns3(orders: list[dict[str, Any]]) -> list[list[float | None]]:
    """Completion times in seconds, by case and flow."""
    command = [sys.executable, str(FOLDER / "ns3_flows.py")]
    done = subprocess.run(
        command, input=json.dumps(orders), capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    answer: list[list[float | None]] = json.loads(done.stdout)
    return answer


def main() -> None:
    answers = ask_ns3(cases())
    rows = [{**case, "completions": times} for case, times in zip(cases(), answers, strict=True)]
    note = "ns-3 3.44 (wheel ns3 3.44.post0), made by: python -m tests.simulator.ns3_cases"
    REFERENCE.write_text(json.dumps({"made": note, "cases": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
