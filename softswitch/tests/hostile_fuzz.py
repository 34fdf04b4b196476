# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Hostile programs, built with the sanitizers, and what runs of them fed with frames: run by test_hostile_pipelines.py
in a process of its own, which has the sanitizers' runtime preloaded. `python hostile_fuzz.py CACHE SEED COUNT` mutates;
with a count of 0 the committed ones run. Says how many ran, and how many were refused."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fuzz import damaged
from mutations import base, hostile, mutated
from softswitch.errors import PipelineError
from softswitch.state.entities import CloneSession, Replica
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

BASES = ("wire", "wire", "wire", "kinds", "copies", "parsing", "validity", "hashes", "state")
FRAMES = 40


def main(cache: Path, seed: int, count: int) -> None:
    rng = random.Random(seed)
    programs = [mutated(base(rng.choice(BASES)), rng) for _ in range(count)]
    ran = refused = 0
    for program in programs or [program for program, _ in hostile().values()]:
        try:
            pipeline = Pipeline.load(program, cache, sanitize=True)
        except PipelineError as error:
            if "gcc failed" in str(error):
                sys.exit(f"what C is made of was not checked:\n{error}\n{program!r}")
            refused += 1
            continue
        frames(pipeline, rng)
        ran += 1
        shutil.rmtree(cache, ignore_errors=True)
    sys.stdout.write(f"{ran} ran, {refused} refused\n")


def frames(pipeline: Pipeline, rng: random.Random) -> None:
    """Some of them, through all that the program may do with them."""
    switch = Switch(sanitize=True)
    switch.swap(pipeline)
    for session in range(1, 5):
        pipeline.clone_insert(CloneSession(session, [Replica(session)]))
        pipeline.multicast_insert(session, [Replica(port, port) for port in range(session)])
    for digest in pipeline.digests:
        pipeline.digest_enable(digest, True)
    for number in range(FRAMES):
        switch.inject(rng.choice((1, 2, 3, 510)), shaped(rng), number * 1000)
    switch.events()
    switch.close()
    pipeline.close()


def shaped(rng: random.Random) -> bytes:
    """Ethernet of the types that the tests' programs know, or anything."""
    kind = rng.choice((0x0800, 0x1234, 0x88B5, 0x88B6, 0x88B7, 0x88B8, 0x4242))
    return damaged(rng, [rng.randbytes(12) + kind.to_bytes(2, "big") + rng.randbytes(rng.randrange(200))])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
