#!/bin/sh
# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
# Compiles the programs beside this file with the p4c-bm2-ss on PATH. Run it after changing one; the results are committed.
# Only programs that BMv2 runs, too (cases.py), have P4Info. Create an empty NAME.p4info.txtpb for a further one.
set -eu
cd "$(dirname "$0")"
for p4 in *.p4; do
    name=${p4%.p4}
    set --
    [ ! -e "$name.p4info.txtpb" ] || set -- --p4runtime-files "$name.p4info.txtpb"
    p4c-bm2-ss "$@" -o "$name.json" "$p4"
done
python3 - *.json <<'PYTHON'
import json, sys
def strip(x):
    if isinstance(x, dict):
        return {k: strip(v) for k, v in x.items() if k != "column" and k != "source_fragment"}
    return [strip(v) for v in x] if isinstance(x, list) else x
for name in sys.argv[1:]:
    tree = strip(json.load(open(name)))
    with open(name, "w") as f:
        json.dump(tree, f, separators=(",", ":"), sort_keys=False)
        f.write("\n")
PYTHON
