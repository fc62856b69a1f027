"""The site: these pages, the notebooks with the outputs they are kept with, and the reference made of the docstrings.

    sphinx-build -n -W --keep-going -b html docs build/docs

Nothing is executed and nothing is fetched, neither by the build nor by its readers: MathJax comes from a
package of the extra ``docs`` and is part of the site. Two folders here are written by every build and not
kept: ``api/``, one page per module of nerm, and ``notebooks/``, copies whose links lead to the pages of the site.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import pages  # noqa: E402

import nerm  # noqa: E402
import nerm.typing as nerm_typing  # noqa: E402

project = "nerm"
author = "The nerm developers"
copyright = f"2026, {author}"
version = release = nerm.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx_copybutton"]
exclude_patterns = ["figures"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# Short names of array types are written as they are: spelled out, ArrayLike alone takes two lines.
autodoc_type_aliases = {name: name for name in ("ArrayLike", *vars(nerm_typing)) if name[0].isupper()}
autodoc_default_options = {
    "members": True,
    # Methods that come from nerm's own base classes are shown, those of Python's and scikit-learn's are not.
    "inherited-members": ", ".join(pages.FOREIGN_BASES),
}
python_use_unqualified_type_names = True
maximum_signature_line_length = 110
add_module_names = False
toc_object_entries_show_parents = "hide"
highlight_language = "none"  # an indented block is a formula
# Types in signatures may lead nowhere: numpy's and friends' (their inventories would have to be fetched), and
# nerm's own that are not public. Every other reference must arrive.
nitpick_ignore_regex = [("py:class", r".*"), ("py:.*", r"(?!nerm\.).*")]

html_theme = "furo"
html_title = "nerm"
html_theme_options = {"navigation_with_keys": True}
# One file that draws formulas as SVG: it needs no fonts, so that it also works where pages are opened from a
# folder.
MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / "tex-svg.js"
mathjax_path = MATHJAX.name
html_static_path = ["_static", str(MATHJAX)]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app):
    """Write the generated pages, and read docstrings as the plain text that they are."""
    pages.write(HERE)
    app.connect("autodoc-process-docstring", pages.process_docstring)
    app.connect("autodoc-process-signature", pages.process_signature)
    app.connect("autodoc-skip-member", pages.skip_member)
    app.connect("doctree-read", pages.trim_code)
    app.connect("doctree-read", pages.link_code)
