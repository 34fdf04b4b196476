# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Captures the frames of an interface to a pcap stream (draft-ietf-opsawg-pcap).

    python -m netfold.testbed.network.capture INTERFACE FILE

Works in user namespaces: tcpdump and dumpcap change their user before they capture, and there is no other user."""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import sys
import time
from pathlib import Path
from typing import IO, NoReturn

from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.signals import TerminationSignals

_HEADER = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)
"""Magic number of microseconds, version 2.4, time zone, accuracy, longest frame, Ethernet."""
_RECORD = struct.Struct("=IIII")
_ALL_PROTOCOLS = 3
_LONGEST = 1 << 18


def open_capture(interface: str) -> socket.socket:
    """A socket that receives the frames of both directions from now on. Raises OSError."""
    frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    frames.bind((interface, _ALL_PROTOCOLS))
    return frames


def capture_to(interface: str, file: Path) -> NoReturn:
    """Captures to the file until a signal ends the process; prints a line once it listens. Raises NetworkError."""
    TerminationSignals().install()
    with open_capture(interface) as frames:
        try:
            output = file.open("wb")
        except OSError as error:
            raise NetworkError(f"{file} cannot be written: {error.strerror}") from error
        with output:
            sys.stderr.write(f"listening on {interface}\n")
            sys.stderr.flush()
            write_frames(frames, output)


def write_frames(frames: socket.socket, output: IO[bytes]) -> NoReturn:
    """Writes each frame at once, until an exception, such as a signal's; those received before it, too. Goes on when
    the link is cut and restored. Raises OSError."""
    output.write(_HEADER)
    output.flush()
    try:
        while True:
            try:
                frame = frames.recv(_LONGEST)
            except OSError as error:
                if error.errno != errno.ENETDOWN:
                    raise
            else:
                _write(frame, output)
    except (KeyboardInterrupt, SystemExit):
        frames.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                _write(frames.recv(_LONGEST), output)
        raise


def _write(frame: bytes, output: IO[bytes]) -> None:
    seconds, microseconds = divmod(time.time_ns() // 1000, 1_000_000)
    output.write(_RECORD.pack(seconds, microseconds, len(frame), len(frame)) + frame)
    output.flush()


if __name__ == "__main__":
    capture_to(sys.argv[1], Path(sys.argv[2]))
