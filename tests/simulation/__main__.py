# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.simulation`."""

import sys

from tests.simulation.cli import main

sys.exit(main())
