# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures for readers: one palette, one style of all figures, and the drawing of a plan."""
