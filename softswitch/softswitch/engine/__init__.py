# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The I/O engine: moves frames between network interfaces and the switch core, on a thread of its own, in C."""
