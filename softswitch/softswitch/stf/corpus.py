# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs p4c's corpus: compiles each program, runs its STF file, and reports the reason of each failure."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from softswitch.errors import PipelineError, UnsupportedConstructError
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch
from softswitch.stf.run import Runner
from softswitch.stf.script import StfError, parse

P4C_DEADLINE_S = 60


class Verdict(Enum):
    PASS = "pass"
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    COMPILER = "p4c fails"


@dataclass(frozen=True)
class StfOutcome:
    """Outcome of one test."""

    name: str
    verdict: Verdict
    reason: str = ""


def run_stf(program: Path, stf: Path, cache_dir: Path) -> StfOutcome:
    """Runs one STF file on a P4 program (.p4, compiled with p4c-bm2-ss from PATH) or its compiled JSON."""
    name = program.stem
    try:
        p4_json = program.read_bytes() if program.suffix == ".json" else compile_p4(program)
    except CompilerError as e:
        return StfOutcome(name, Verdict.COMPILER, str(e))
    try:
        pipeline = Pipeline.load(p4_json, cache_dir)
    except UnsupportedConstructError as e:
        return StfOutcome(name, Verdict.UNSUPPORTED, str(e))
    except PipelineError as e:
        return StfOutcome(name, Verdict.FAIL, str(e).splitlines()[0])
    switch = Switch()
    switch.swap(pipeline)
    try:
        wrong = Runner(pipeline, switch).run(parse(stf.read_text()))
    except StfError as e:
        return StfOutcome(name, Verdict.FAIL, str(e))
    finally:
        switch.close()
        pipeline.close()
    return StfOutcome(name, Verdict.FAIL, "; ".join(wrong)) if wrong else StfOutcome(name, Verdict.PASS)


class CompilerError(Exception):
    """p4c-bm2-ss is missing or refused the program."""


def compile_p4(program: Path, *flags: str) -> bytes:
    """The JSON of a v1model program. Raises CompilerError."""
    p4c = shutil.which("p4c-bm2-ss")
    if p4c is None:
        raise CompilerError("p4c-bm2-ss is not on PATH")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [p4c, "-I", str(program.parent), *flags, "-o", str(out), str(program)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=P4C_DEADLINE_S, check=False
            )
        except subprocess.TimeoutExpired as e:
            raise CompilerError(f"p4c-bm2-ss took more than {P4C_DEADLINE_S} s") from e
        if done.returncode != 0 or not out.exists():
            lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
            raise CompilerError(lines[0] if lines else "p4c-bm2-ss failed")
        return out.read_bytes()


def corpus(folder: Path) -> list[tuple[Path, Path]]:
    """The v1model programs of p4c's samples that have an STF file, by name."""
    out = []
    for program in sorted(folder.glob("*-bmv2.p4")):
        stf = program.with_suffix(".stf")
        if stf.exists() and "v1model.p4" in program.read_text(errors="replace"):
            out.append((program, stf))
    return out


def run_corpus(folder: Path, cache_dir: Path) -> Iterator[StfOutcome]:
    """`folder` is p4c's testdata/p4_16_samples, or a checkout of p4c."""
    samples = folder / "testdata" / "p4_16_samples"
    for program, stf in corpus(samples if samples.is_dir() else folder):
        yield run_stf(program, stf, cache_dir)
