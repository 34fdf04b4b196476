# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A congestion window against a bottleneck of 20 chunks an RTT, whose queue marks above 10 chunks and holds 30.

python docs/tutorials/exercises/window_trial.py own panama
"""

from __future__ import annotations

import ctypes
import sys

from netfold.protocol.congestion import Timing
from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.native import HEADERS, library

WIRE, MARKS, HOLDS = 20, 10, 30
RTT = 0.001
ROUNDS, SETTLED = 400, 200


class _Window(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_window")


class _Settings(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_window_settings")


class _Acks(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_ack_summary")


def main() -> None:
    for name in sys.argv[1:] or ["panama"]:
        sizes, losses = trial(Congestion(name))
        late = sizes[SETTLED:]
        used = sum(min(size, WIRE) for size in late) / len(late) / WIRE
        queue = sum(max(0, size - WIRE) for size in late) / len(late)
        print(f"{name}: {used:.0%} of the link, {queue:.1f} chunks in the queue, {losses} losses")


def trial(algorithm: Congestion) -> tuple[list[int], int]:
    """The window of each RTT, and how many overflowed the queue."""
    code, window = library(), _Window()
    code.nf_window_cwnd.restype = ctypes.c_int64
    settings = _Settings(1000, Timing().delay_threshold, 1.0)
    code.nf_window_init(ctypes.byref(window), list(Congestion).index(algorithm), ctypes.byref(settings))
    sizes, losses = [], 0
    for _ in range(ROUNDS):
        size = int(code.nf_window_cwnd(ctypes.byref(window)))
        sizes.append(size)
        queue = max(0, size - WIRE)
        marked = min(size, max(0, queue - MARKS))
        acks = _Acks(size, marked, queue / WIRE * RTT, RTT)
        code.nf_window_on_acks(ctypes.byref(window), ctypes.byref(acks))
        if queue > HOLDS:
            losses += 1
            code.nf_window_on_loss(ctypes.byref(window))
    return sizes, losses


if __name__ == "__main__":
    main()
