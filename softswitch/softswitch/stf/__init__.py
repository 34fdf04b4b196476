# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""STF, the packet tests of p4c (grammar: tools/stf/stf_parser.py and backends/bmv2/bmv2stf.py there), run on
this switch."""

from softswitch.stf.corpus import StfOutcome, Verdict, run_corpus, run_stf
from softswitch.stf.script import Command, StfError, parse

__all__ = ["Command", "StfError", "StfOutcome", "Verdict", "parse", "run_corpus", "run_stf"]
