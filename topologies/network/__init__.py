# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A fabric as a running network: namespaces, switch processes and links, by Mininet."""

from netfold.topologies.network.debian import show_mininet

show_mininet()
