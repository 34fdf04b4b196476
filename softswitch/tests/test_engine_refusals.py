# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A link refuses frames. Those that are dropped are counted, and the others arrive once, in order."""

from __future__ import annotations

import struct

from test_engine_backlog import namespace, set_rate
from testnet import Host, Namespace, ethernet, needs_root, of_kind, wait_for

__all__ = ["namespace"]
pytestmark = needs_root
DATA, MARKER = 0x88B5, 0x88B6
FRAMES, FURTHER, SIZE = 400, 100, 500


def numbered(number: int) -> bytes:
    return ethernet(DATA, struct.pack("!I", number) + bytes(SIZE - 18))


def number_of(frame: bytes) -> int:
    return int(struct.unpack_from("!I", frame, 14)[0])


def test_no_frame_arrives_twice_or_late_once_the_link_is_free(
    namespace: Namespace, hosts: list[Host], start_switch, kind: str
) -> None:
    switch = start_switch(namespace, *of_kind(kind, ("-i", "1@sw1", "-i", "2@sw2")), program="wire")
    one, two = hosts

    marker = ethernet(MARKER, bytes(SIZE - 14))

    def done() -> int:
        link = switch.port(2)["link"]
        return link["tx_packets"] + link["tx_dropped"]

    for number in range(FRAMES):
        one.send(numbered(number))
        if number % 50 == 49:
            wait_for(lambda n=number: done() == n + 1, "the frames")
    set_rate(namespace, "change", "1gbit", 16000)
    namespace.end("link2").send(marker)  # the link looks at its rate when a frame comes
    arrived = []
    while (frame := two.receive()) != marker:
        assert frame is not None
        arrived.append(number_of(frame))
    for number in range(FRAMES, FRAMES + FURTHER):
        one.send(numbered(number))
        wait_for(lambda n=number: done() == n + 1, "the frame")
    left = switch.port(2)["link"]["tx_packets"] - len(arrived)
    arrived += [number_of(frame) for frame in two.receive_many(left)]
    assert arrived == sorted(set(arrived))
    assert arrived[-1] == FRAMES + FURTHER - 1
    assert switch.port(2)["switch"]["queue_depth"] == 0
