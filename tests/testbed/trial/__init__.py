# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A trial of the whole: random jobs beside faults on the testbed, every sum checked."""
