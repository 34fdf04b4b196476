# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What is written into switches, one module for each table or control of p4src, and the session that
keeps it true."""
