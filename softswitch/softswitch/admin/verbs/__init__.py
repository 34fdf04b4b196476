# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of simple_switch_CLI, received over the control socket from `softswitch cli`. Each is a function of its
arguments; its docstring is its help, as in BMv2."""
