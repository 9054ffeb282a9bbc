"""MkDocs hook: the site's index and text for language models (https://llmstxt.org).

llms.txt has a title, a summary and lists of links. Each link leads to a page's Markdown, which the
site has beside the page. llms-full.txt has the text of all of these pages.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files

# The format's heading for what a reader may leave out: files beside docs, such as measurements.
_OPTIONAL = "Optional"
_OPTIONAL_FOLDER = "source/"
_NO_PROSE = ("```", "#", "|", "<!", "- ", "![")
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])")


def on_env(env: Environment, *, config: MkDocsConfig, files: Files) -> Environment:
    """Writes the pages' Markdown, llms.txt and llms-full.txt into the site.

    Args:
        env: returned unchanged; MkDocs' Jinja environment.
        config: gives the navigation and the site's folder.
        files: the site's pages, already rendered.
    """
    pages = {
        file.src_uri: TextPage(file.src_uri, file.page.markdown)
        for file in files.documentation_pages()
        if file.page is not None and file.page.markdown is not None
    }
    written = {page.uri: page.markdown for page in pages.values()}
    about = (config.site_name, config.site_description or "")
    written["llms.txt"] = index(*about, config.nav or [], pages, config.site_url or "")
    written["llms-full.txt"] = full_text(*about, config.nav or [], pages)
    for uri, text in written.items():
        path = Path(config.site_dir, uri)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return env


@dataclass(frozen=True)
class TextPage:
    """A page as language models read it.

    Args:
        uri: path of its Markdown in the site, such as `guides/lmi.md`.
        markdown: its text, whose links lead to files of the site.
    """

    uri: str
    markdown: str

    @property
    def title(self) -> str:
        """Returns its first heading, or its file's name if it has none."""
        found = _HEADING.search(self.markdown)
        return _plain(found[1]) if found else self.uri

    @property
    def summary(self) -> str:
        """Returns the first sentence of its first paragraph; empty if the page has none.

        If that sentence only says who the page is for, the next sentence is added.
        """
        text = _HEADING.sub("", self.markdown, count=1)
        paragraphs = (part.strip() for part in re.split(r"\n\s*\n", text))
        prose = (part for part in paragraphs if part and not part.startswith(_NO_PROSE))
        sentences = _SENTENCE.split(_plain(" ".join(next(prose, "").split())))
        return " ".join(sentences[: 2 if sentences[0].startswith("For ") else 1])


def sections(nav: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Returns the pages of a navigation by section, with the optional ones in one of their own.

    Args:
        nav: as mkdocs.yml has it.
    """
    found, optional = dict[str, list[str]](), list[str]()
    for entry in nav:
        for title, inner in entry.items():
            found[title] = []
            for uri in _uris(inner):
                (optional if uri.startswith(_OPTIONAL_FOLDER) else found[title]).append(uri)
    return {**found, _OPTIONAL: optional}


def index(
    name: str, description: str, nav: list[dict[str, Any]], pages: Mapping[str, TextPage], url: str
) -> str:
    """Returns llms.txt.

    Args:
        name: of the site.
        description: of the site, one sentence.
        nav: as mkdocs.yml has it.
        pages: by their addresses in the navigation.
        url: address of the site with its final slash, or empty for relative links.
    """
    lines = [f"# {name}", "", f"> {description}"]
    for title, uris in sections(nav).items():
        lines += ["", f"## {title}", ""]
        for uri in uris:
            page = pages[uri]
            note = f": {page.summary}" if page.summary else ""
            lines.append(f"- [{page.title}]({url}{page.uri}){note}")
    return "\n".join(lines) + "\n"


def full_text(
    name: str, description: str, nav: list[dict[str, Any]], pages: Mapping[str, TextPage]
) -> str:
    """Returns llms-full.txt: every page of the navigation but the optional ones."""
    chosen = (uri for title, uris in sections(nav).items() if title != _OPTIONAL for uri in uris)
    parts = [f"# {name}\n\n> {description}\n"]
    parts += [f"---\n\nSource: {uri}\n\n{pages[uri].markdown.strip()}\n" for uri in chosen]
    return "\n".join(parts)


def _uris(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
        return
    entries = nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ()
    for entry in entries:
        yield from _uris(entry)


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", text).replace("**", "")
