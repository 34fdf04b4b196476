# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sphinx: the pages of docs/ as a site. `make docs` builds it; a warning is an error."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "netfold"
author = "The netfold authors"
copyright = "2026 The netfold authors"
version = release = installed_version("netfold")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "diagrams",
    "repository_pages",
    "reference_pages",
]
exclude_patterns = ["_extensions", "reference/generated", "results/data"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]  # GitHub draws these fences, too
nb_execution_mode = "off"  # their stored outputs are shown; tests/docs renews them
copybutton_prompt_text = "$ "

autodoc_member_order = "bysource"
autodoc_typehints = "signature"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"netfold {version}"
html_theme_options = {"navigation_with_keys": True}
