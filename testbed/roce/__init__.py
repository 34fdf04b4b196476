# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual machines with RDMA endpoints (rdma_rxe) as hosts of an emulated network."""
