# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""simple_switch_grpc in tests: its command line, with free ports, and the end of its log if it ends early.

Built with its Thrift server, as p4lang's packages are, every process also listens at a Thrift port (default 9090) and
ends if that is taken.
"""

from __future__ import annotations

import functools
import signal
import socket
import subprocess
import time
from pathlib import Path

import grpc

PROGRAM = "simple_switch_grpc"
START_S = 20.0
_LOG_LINES = 8


class SwitchDiedError(Exception):
    """A switch process ended, or does not answer. `signal`: the signal that ended it, or None."""

    def __init__(self, code: int | None, log: Path) -> None:
        self.signal = signal.Signals(-code) if code is not None and code < 0 else None
        lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        log_end = "".join(f"\n  {line}" for line in lines) or " its log is empty"
        ended = (
            "does not answer" if code is None else f"ended with {self.signal.name if self.signal else code}"
        )
        super().__init__(f"the switch {ended}:{log_end}")


def command(
    address: str, ports: dict[int, str], *options: str, target_options: tuple[str, ...] = ()
) -> list[str]:
    """Command line of a switch with its gRPC server at `address`. `ports`: interface of each port number; `options` are
    its own, `target_options` those after `--`."""
    interfaces = [part for number, name in ports.items() for part in ("-i", f"{number}@{name}")]
    thrift = ["--thrift-port", str(free_port())] if _has_thrift() else []
    own = ["--no-p4", "--device-id", "1", *thrift, *interfaces, *options]
    return [PROGRAM, *own, "--", "--grpc-server-addr", address, *target_options]


def wait_until_ready(
    process: subprocess.Popen[bytes], channel: grpc.Channel, log: Path, start_s: float = START_S
) -> None:
    """Waits up to `start_s` seconds for its gRPC server. Raises SwitchDiedError with the end of `log`."""
    ready = grpc.channel_ready_future(channel)
    deadline = time.monotonic() + start_s
    while True:
        try:
            ready.result(timeout=0.2)
            return
        except grpc.FutureTimeoutError:
            code = process.poll()
            if code is not None or time.monotonic() > deadline:
                raise SwitchDiedError(code, log) from None


@functools.cache
def _has_thrift() -> bool:
    shown = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, timeout=10, check=False)
    return "--thrift-port" in shown.stdout + shown.stderr


def free_port() -> int:
    """A TCP port of 127.0.0.1 that no process listens at. It is not reserved: another process may take it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
