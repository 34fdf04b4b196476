# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A fabric as an emulated network: namespaces, switch processes and veth links, with Mininet."""

from netfold.testbed.network.debian import make_mininet_importable

make_mininet_importable()
