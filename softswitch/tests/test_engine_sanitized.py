# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine under AddressSanitizer and ThreadSanitizer: frames both ways while ports, faults and links come and go."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from testnet import DEADLINE_S, Namespace, ethernet, needs_root

pytestmark = needs_root
HERE = Path(__file__).parent
ENGINE = HERE.parent / "softswitch" / "engine"
SECONDS = 3


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_nothing_is_misused_while_everything_changes(tmp_path: Path, sanitizer: str) -> None:
    program = tmp_path / "stress"
    command = [
        "gcc",
        "-std=gnu11",
        "-g",
        "-O1",
        f"-fsanitize={sanitizer}",
        "-fno-omit-frame-pointer",
        "-pthread",
    ]
    command += [
        f"-I{ENGINE}",
        f"-I{ENGINE.parent / 'runtime'}",
        "-o",
        program,
        HERE / "engine_stress.c",
        *ENGINE.glob("*.c"),
    ]
    subprocess.run(command, check=True, timeout=60)
    # ThreadSanitizer wants the address space laid out as it is used to.
    plain = ["setarch", "-R"] if sanitizer == "thread" else []
    namespace = Namespace(2)
    try:
        stress = subprocess.Popen(
            ["ip", "netns", "exec", namespace.name, *plain, program, str(SECONDS), tmp_path, "sw1", "sw2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert stress.stdout is not None
        assert stress.stdout.readline() == "ready\n"
        hosts = [namespace.host(1), namespace.host(2)]
        chance = random.Random(1)
        while stress.poll() is None:
            for _ in range(50):
                size = chance.choice((0, 1, 46, 50, 100, 498, 1000, 1500))
                chance.choice(hosts).send(ethernet(0x88B5, bytes(size)))
            if chance.random() < 0.02:
                namespace.remove_link(2)
                namespace.add_link(2)
                hosts[1].close()
                hosts[1] = namespace.host(2)
        said = stress.stdout.read()
        for host in hosts:
            host.close()
        assert stress.wait(DEADLINE_S) == 0, said
        assert "Sanitizer" not in said
        assert "runtime error" not in said
        assert "done" in said
    finally:
        namespace.close()
