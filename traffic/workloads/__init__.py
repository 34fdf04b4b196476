# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workloads of members: training, arrays, gradients of known models."""

HIDDEN_UNITS = 128
"""Default hidden units of the perceptron for digits."""
