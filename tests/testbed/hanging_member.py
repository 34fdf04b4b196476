# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker, in its host, that makes small calls for ever, and makes its job hang in one of them. Before the
call AT it writes the file REACHED, and there it does this:

idle   makes no further call
stop   stops its own process
other  makes another collective
late   is late in that call and each later one
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np

from netfold.traffic.errors import TrafficError
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.worker.worker import Worker

TIMEOUT_S = 120.0
LATE_S = 0.15
EACH_S = 0.005


def make_no_further_call() -> None:
    threading.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("controller")
    parser.add_argument("job")
    parser.add_argument("host")
    parser.add_argument("elements", type=int)
    parser.add_argument("reached", type=Path)
    parser.add_argument("--at", type=int, default=-1)
    parser.add_argument("--how", default="")
    told = parser.parse_args()
    member = ControllerMembership(told.controller, told.job, told.host)
    array = np.ones(told.elements, np.float32)
    with Worker(member) as worker:
        member.wait(60)
        call = 0
        while True:
            here = call == told.at
            if here:
                told.reached.write_text("")
            if here and told.how == "idle":
                make_no_further_call()
            if here and told.how == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            if told.at >= 0 and call >= told.at and told.how == "late":
                time.sleep(LATE_S)  # the lateness itself, of several times a call's duration
            try:
                if here and told.how == "other":
                    worker.broadcast(array, timeout=TIMEOUT_S)
                else:
                    worker.all_reduce(array, TIMEOUT_S)
            except TrafficError:
                make_no_further_call()
            call += 1
            time.sleep(EACH_S)  # what a program computes between calls; the switches have the processor


if __name__ == "__main__":
    main()
