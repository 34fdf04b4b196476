# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The seam between the controller and all that uses it: the generated stubs of netfold.proto (`make proto` renews
them), and how a user reaches the controller."""
