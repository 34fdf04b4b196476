# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A compiled program in a switch, for a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

PROGRAMS = Path(__file__).parent / "programs"


def program(name: str) -> bytes:
    return (PROGRAMS / f"{name}.json").read_bytes()


@contextmanager
def running(
    p4_json: bytes, cache_dir: Path, threads: int = 1, queues: int = 1, traced: bool = False
) -> Iterator[tuple[Pipeline, Switch]]:
    pipeline = Pipeline.load(p4_json, cache_dir, threads=threads, traced=traced)
    switch = Switch(threads=threads, queues=queues)
    try:
        switch.swap(pipeline)
        yield pipeline, switch
    finally:
        switch.close()
        pipeline.close()
