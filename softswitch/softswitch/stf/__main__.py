# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m softswitch.stf CORPUS_DIR`: the table of p4c's STF tests and the score.
`... PROGRAM STF` runs one."""

from __future__ import annotations

import sys
from pathlib import Path

from softswitch.build.native import default_cache_dir
from softswitch.stf.corpus import Verdict, run_corpus, run_stf


def main(arguments: list[str]) -> int:
    """Exit code 0 when all passed."""
    if len(arguments) not in (1, 2) or not Path(arguments[0]).exists():
        sys.stderr.write("usage: python -m softswitch.stf CORPUS_DIR | PROGRAM.p4|PROGRAM.json FILE.stf\n")
        return 2
    cache = default_cache_dir()
    if len(arguments) == 2:
        outcomes = iter([run_stf(Path(arguments[0]), Path(arguments[1]), cache)])
    else:
        outcomes = run_corpus(Path(arguments[0]), cache)
    done = []
    for o in outcomes:
        done.append(o)
        sys.stdout.write(f"{o.verdict.value:12} {o.name:60} {o.reason[:300]}\n")
        sys.stdout.flush()
    passed = sum(o.verdict is Verdict.PASS for o in done)
    sys.stdout.write(f"{passed} of {len(done)} pass ({100 * passed / max(1, len(done)):.1f} %)\n")
    return 0 if passed == len(done) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
