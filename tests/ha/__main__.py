# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.ha`."""

import sys

from tests.ha.cli import main

sys.exit(main())
