# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m netfold`: the `netfold` command."""

from netfold.cli import main

if __name__ == "__main__":
    main()
