# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the entries of switches, in one module for each table or control of p4src, and keeps the switches so in a
session."""
