# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Helpers of tests that start switch processes: softswitch's own, and those of the distributions that use it."""
