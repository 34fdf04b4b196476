# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual machines with real RDMA endpoints (rdma_rxe) as the hosts of a network in Mininet."""
