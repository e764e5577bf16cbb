"""Settings of the site, which Sphinx builds from these pages: `make docs`."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import public_names

project = "jaxsim-novelty"
author = "The jaxsim-novelty developers"
copyright = author
version = release = version_of("jaxsim-novelty")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "docstrings",
    "notebooks",
    "public_names",
    "registries",
    "sources",
]
exclude_patterns = ["extensions"]
templates_path = ["templates"]

# Pages are Markdown as GitHub shows it; its anchors are those of the headings.
myst_heading_anchors = 4
nb_execution_mode = "off"  # `notebooks` shows them as the tests have executed them
nb_merge_streams = True
# Docstrings name attributes that several classes have, and refer to none of them.
suppress_warnings = ["ref.python"]

autosummary_generate = True
autosummary_context = {
    "packages": list(public_names.packages()),
    "constants": public_names.constants(),
    "elsewhere": public_names.classes_elsewhere(),
}
autodoc_default_options = {"members": True, "undoc-members": True}
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
autodoc_mock_imports = ["stable_baselines3"]  # brings PyTorch, which is large
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Modes", "params_style")]
default_role = "code"

html_static_path = ["static"]
html_css_files = ["wide.css"]
html_theme = "pydata_sphinx_theme"
html_title = f"jaxsim-novelty {version}"
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("guide", "architecture", "contributing", "changelog")}
html_theme_options = {
    "collapse_navigation": True,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
