# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ports of DPDK: a library of its own, for processes that have such ports."""
