"""The frame of an HTML page that needs no other file: no script, and no address that is loaded."""

import re
from collections.abc import Sequence
from html import escape
from typing import Final

from slipway.operations.plots import STYLE as _PLOTS

_STYLE: Final = """\
body { margin: 1.5rem auto; max-width: 78rem; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif;
  color: #1f2730; background: #ffffff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem }
code { font: 0.92em ui-monospace, monospace }
.trouble { color: #a93a22; font-weight: 600 }
.plots { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)) }
.plot { width: 100% }
@media (prefers-color-scheme: dark) {
  body { color: #e8edf2; background: #14191f }
  .trouble { color: #ff9d86 }
}
"""


def html_page(title: str, style: str, parts: Sequence[str]) -> str:
    """Returns a page of HTML parts, for light and dark screens, with CSS beside every page's."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            f'<head><meta charset="utf-8"><title>{escape(title)}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<style>\n{_PLOTS}{_STYLE}{style}</style></head>",
            f"<body>\n<main>\n<h1>{escape(title)}</h1>",
            *parts,
            "</main>\n</body>\n</html>\n",
        ]
    )


def marked(text: str) -> str:
    """Returns text as HTML, with what stands between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
