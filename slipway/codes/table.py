"""Reads the explanations of codes from docs/troubleshooting.md, for `slipway explain` and SARIF.

`troubleshooting.md` beside this module is a link to that page. A wheel has the page in its place.
"""

import difflib
import re
import textwrap
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources

from slipway.codes.code import Code

PAGE = "docs/troubleshooting.md"
_SECTION = re.compile(
    r"^### (SW\d{3}): (.+)\n\n((?:.+\n)+)\n\*\*Remedy\.\*\* ((?:.+\n)+)", re.MULTILINE
)
_LINK = re.compile(r"\[([^\]]*)\]\((\w[^):]*)\)")
_WIDTH = 80
_NEAREST = 3


@dataclass(frozen=True)
class Entry:
    """The explanation of one code, with the paths of pages in place of links."""

    code: Code
    title: str
    cause: str
    remedy: str
    page: str = PAGE

    def as_text(self) -> str:
        parts = [f"{self.code}: {self.title}", self.cause, f"Remedy: {self.remedy}"]
        wrapped = [
            textwrap.fill(part, _WIDTH, break_long_words=False, break_on_hyphens=False)
            for part in parts
        ]
        return "\n\n".join([*wrapped, f"Page: {self.page}"])

    def as_json(self) -> dict[str, str]:
        """Returns the entry for machines; the keys are part of the command line's contract."""
        return asdict(self)


@cache
def entries() -> dict[Code, Entry]:
    """Returns every entry by its code, in the order of the page."""
    text = resources.files(__package__).joinpath("troubleshooting.md").read_text("utf-8")
    found = (map(_plain, match.groups()) for match in _SECTION.finditer(text))
    return {Code(code): Entry(Code(code), *texts) for code, *texts in found}


def _plain(text: str) -> str:
    """Returns a text on one line, with `reference (docs/reference.md)` for a link."""
    return _LINK.sub(r"\1 (docs/\2)", " ".join(text.split()))


def nearest_codes(text: str) -> list[Code]:
    """Returns up to three codes that a text may have meant, the likeliest first."""
    digits = re.sub(r"\D", "", text)[:3]
    if digits:
        wanted = int(digits.ljust(3, "0"))
        return sorted(Code, key=lambda code: abs(int(code[2:]) - wanted))[:_NEAREST]
    names = {code.name: code for code in Code}
    word = re.sub(r"\W+", "_", text.upper())
    return [names[name] for name in difflib.get_close_matches(word, names, n=_NEAREST)]
