# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Random and damaged frames through a program built with the sanitizers: run by test_core_fuzz.py in a
process of its own, which has the sanitizer's runtime preloaded. `python fuzz.py PROGRAM.json CACHE SEED COUNT`."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from cases import CASES
from softswitch.state.entities import CloneSession, Replica
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch


def main(program: Path, cache: Path, seed: int, count: int) -> None:
    rng = random.Random(seed)
    pipeline = Pipeline.load(program.read_bytes(), cache, sanitize=True)
    switch = Switch(sanitize=True)
    switch.swap(pipeline)
    setup, frames = CASES.get(program.stem, (lambda _sw, _rng: None, None))
    setup(pipeline, rng)
    for session in range(1, 16):
        if session not in pipeline.clone_sessions():
            pipeline.clone_insert(CloneSession(session, [Replica(session)], packet_length=session))
    for group in range(1, 16):
        if group not in pipeline.multicast_groups():
            pipeline.multicast_insert(group, [Replica(p, p) for p in range(group)])
    for profile in pipeline.profiles:
        for held in list(pipeline.groups(profile)):
            members = [replace(m, watch_port=bytes([rng.randrange(4)])) for m in held.members]
            pipeline.group_modify(profile, replace(held, members=members))
    switch.port_config(3, 1_000_000, 8)
    good = [f for _, f in frames(rng)] if frames else []
    now = 0
    for _ in range(count):
        now += rng.randrange(100_000)
        switch.inject(rng.randrange(600), damaged(rng, good), now)
        if rng.random() < 0.1:
            switch.service(now)
            switch.port_set_up(rng.randrange(4), rng.random() < 0.5)
    switch.close()
    pipeline.close()


def damaged(rng: random.Random, good: list[bytes]) -> bytes:
    """A frame that is random, or a good one cut, grown or with some bytes changed."""
    if not good or rng.random() < 0.3:
        return rng.randbytes(rng.choice([0, 1, 13, 14, 60, 64, 300, 1500, 9000, rng.randrange(2000)]))
    frame = bytearray(rng.choice(good))
    for _ in range(rng.randrange(4)):
        frame[rng.randrange(min(len(frame), 64))] = rng.choice([0, 255, rng.randrange(256)])
    kind = rng.random()
    if kind < 0.4:
        return bytes(frame[: rng.randrange(len(frame) + 1)])
    return bytes(frame) + rng.randbytes(rng.randrange(100)) if kind < 0.5 else bytes(frame)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
