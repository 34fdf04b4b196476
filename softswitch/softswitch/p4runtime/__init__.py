# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime v1 server of the embedded switch (P4Runtime specification 1.5)."""
