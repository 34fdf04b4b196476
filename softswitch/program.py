# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""From BMv2 JSON to a shared object and its layout, through a cache that is keyed by content."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softswitch import native
from softswitch.translate import translate

TRANSLATOR = Path(__file__).parent / "translate"


@dataclass(frozen=True)
class Program:
    """A compiled program: the shared object, and the numbering that the control plane needs."""

    path: Path
    layout: Mapping[str, Any]


def load_program(p4_json: bytes, cache_dir: Path, *, sanitize: bool = False) -> Program:
    """Takes the program from the cache or builds it. The key covers the JSON, the translator, the runtime
    headers, the compiler and the processor. Beside the object lie its C source and layout. Raises
    UnsupportedConstruct or PipelineError."""
    digest = hashlib.sha256(p4_json)
    digest.update(translator_hash().encode())
    digest.update(b"sanitized" if sanitize else b"")
    stem = cache_dir / f"program-{digest.hexdigest()[:24]}"
    target, layout = stem.with_suffix(".so"), stem.with_suffix(".json")
    if not (target.exists() and layout.exists()):
        _build(p4_json, stem, sanitize)
    return Program(target, json.loads(layout.read_text()))


def _build(p4_json: bytes, stem: Path, sanitize: bool) -> None:
    translation = translate(p4_json)
    stem.parent.mkdir(parents=True, exist_ok=True)
    source = stem.with_suffix(".c")
    _write(source, translation.source)
    _write(stem.with_suffix(".json"), json.dumps(translation.layout))
    native.compile_shared([source], stem.with_suffix(".so"), native.SANITIZE if sanitize else native.OPTIMIZE)


def _write(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as f:
        f.write(text)
    Path(temporary).replace(path)


@functools.cache
def translator_hash() -> str:
    """What the generated code depends on beside the JSON."""
    digest = hashlib.sha256(native.toolchain().encode())
    for path in [*sorted(TRANSLATOR.glob("*.py")), *sorted(native.RUNTIME.glob("*.h"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()
