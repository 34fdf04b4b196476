# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.testbed.trial`."""

import sys

from tests.testbed.trial.cli import main

sys.exit(main())
