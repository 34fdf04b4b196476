# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of simple_switch_CLI, as text in and text out: what `netfold softswitch cli` sends over the control
socket. Each is a function of its words; its docstring is its help, as in BMv2."""
