# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""softswitch, which writes the election id of each change that it takes to a file:

python -m tests.ha.recorded_switch FILE OPTIONS..."""

from __future__ import annotations

import sys
from pathlib import Path

from finsy.proto import U128, p4r
from softswitch.cli import main
from softswitch.p4runtime.service import P4RuntimeService

_require_primary = P4RuntimeService._require_primary


def record(file: Path) -> None:
    """Write one id a line from now on, in the order of the changes."""

    def recorded(
        service: P4RuntimeService, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest
    ) -> None:
        _require_primary(service, request)
        with file.open("a") as written:
            written.write(f"{U128.decode(request.election_id)}\n")

    P4RuntimeService._require_primary = recorded


if __name__ == "__main__":
    record(Path(sys.argv.pop(1)))
    main()
