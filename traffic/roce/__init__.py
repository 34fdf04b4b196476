# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers of RoCE jobs: C against libibverbs, and the agent that attends the job for them."""
