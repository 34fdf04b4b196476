# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The control socket of a running switch: ports, rates, faults, captures and counters, as lines of JSON.

One request a line, one answer a line, over a Unix stream socket:

    {"op": "set-faults", "port": 1, "direction": "in", "loss": 0.01, "seed": 7}
    {"ok": true, "result": null}
"""
