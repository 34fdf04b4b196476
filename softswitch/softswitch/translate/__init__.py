# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""BMv2 JSON to C. `program.translate` is the way in; README.md beside the package explains it on one page."""
