"""MkDocs hooks: files beside `docs/` in the site, and its text for language models.

A page links to a file of the repository by its relative path, as a code host shows it. The site
puts each such file below `source/`: Markdown as a page, anything else as it is.

llms.txt (https://llmstxt.org) has a title, a summary and lists of links. Each link leads to a
page's Markdown, which the site has beside the page. llms-full.txt has the text of these pages.
"""

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

SOURCE = "source"
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
# The words behind a block's language are for the tests; MkDocs does not know them.
_LABELS = re.compile(r"^(\s*```\w+) [\w -]+$", re.MULTILINE)
# Around the tables that tools.reference writes.
_MARKS = re.compile(r"^<!-- (?:begin .+|end) -->\n\n?", re.MULTILINE)
# The format's heading for what a reader may leave out: files beside docs, such as measurements.
_OPTIONAL = "Optional"
_NO_PROSE = ("```", "#", "|", "<!", "- ", "![")
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
_LINKED_WORDS = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Returns the site's files together with files outside `docs/` that a page links to."""
    tree = _Tree(config)
    waiting = [tree.in_repository(file.src_uri) for file in files.documentation_pages()]
    waiting += [tree.in_repository(name) for name in _pages_of(config.nav) if _is_source(name)]
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        uri = tree.in_site(name)
        if _is_source(uri):
            files.append(File.generated(config, uri, abs_src_path=str(tree.root / name)))
        if not name.endswith(".md"):
            continue
        for target in _LINK.findall((tree.root / name).read_text("utf-8")):
            linked = tree.linked(name, target)
            if linked is not None and _is_source(tree.in_site(linked)) and linked not in seen:
                seen.add(linked)
                waiting.append(linked)
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  # MkDocs passes it
    """Returns a page's text with links as the site needs them, and without labels and marks."""
    tree = _Tree(config)
    here = page.file.src_uri

    def in_site(match: re.Match[str]) -> str:
        linked = tree.linked(tree.in_repository(here), match[1])
        if linked is None:
            return match[1]  # MkDocs reports it
        return os.path.relpath(tree.in_site(linked), posixpath.dirname(here) or ".")

    return _MARKS.sub("", _LABELS.sub(r"\1", _LINK.sub(in_site, markdown)))


def on_env(env: Environment, *, config: MkDocsConfig, files: Files) -> Environment:
    """Writes the pages' Markdown, llms.txt and llms-full.txt into the site."""
    pages = {
        file.src_uri: file.page.markdown
        for file in files.documentation_pages()
        if file.page is not None and file.page.markdown is not None
    }
    head = f"# {config.site_name}\n\n> {config.site_description or ''}\n"
    index, full = texts(head, config.nav or [], pages, config.site_url or "")
    for uri, text in {**pages, "llms.txt": index, "llms-full.txt": full}.items():
        path = Path(config.site_dir, uri)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return env


def texts(
    head: str, nav: list[dict[str, Any]], pages: Mapping[str, str], url: str
) -> tuple[str, str]:
    """Returns llms.txt, and llms-full.txt with every page but the optional ones.

    Both begin with `head`. `pages` has the Markdown by the address in the navigation. `url` has a
    final slash, or is empty for relative links.
    """
    sections, full = dict[str, list[str]](), [head]
    optional = list[str]()
    for title, inner in (item for entry in nav for item in entry.items()):
        sections[title] = []
        for uri in _pages_of(inner):
            place = optional if _is_source(uri) else sections[title]
            place.append(f"- [{_title(uri, pages[uri])}]({url}{uri}){_summary(pages[uri])}")
            if not _is_source(uri):
                full.append(f"---\n\nSource: {uri}\n\n{pages[uri].strip()}\n")
    listed = {**sections, _OPTIONAL: optional}.items()
    index = [f"## {title}\n\n" + "".join(f"{line}\n" for line in lines) for title, lines in listed]
    return "\n".join([head, *index]), "\n".join(full)


def _title(uri: str, markdown: str) -> str:
    """Returns a page's first heading, or its file's name if it has none."""
    found = _HEADING.search(markdown)
    return _plain(found[1]) if found else uri


def _summary(markdown: str) -> str:
    """Returns the first sentence of a page's first paragraph, behind a colon; empty without one.

    If that sentence only says who the page is for, the next sentence is added.
    """
    paragraphs = re.split(r"\n\s*\n", _HEADING.sub("", markdown, count=1))
    prose = (each.strip() for each in paragraphs if not each.strip().startswith(_NO_PROSE))
    sentences = _SENTENCE.split(_plain(" ".join(next(filter(None, prose), "").split())))
    summary = " ".join(sentences[: 2 if sentences[0].startswith("For ") else 1])
    return f": {summary}" if summary else ""


def _plain(text: str) -> str:
    return _LINKED_WORDS.sub(r"\1", text).replace("**", "")


class _Tree:
    """Maps paths in the repository to paths in the site, and back."""

    def __init__(self, config: MkDocsConfig) -> None:
        self.root = Path(config.config_file_path).parent
        self._docs = Path(config.docs_dir).relative_to(self.root).as_posix()

    def in_repository(self, uri: str) -> str:
        if _is_source(uri):
            return uri.removeprefix(f"{SOURCE}/")
        return posixpath.join(self._docs, uri)

    def in_site(self, name: str) -> str:
        inside = name.startswith(f"{self._docs}/")
        return name.removeprefix(f"{self._docs}/") if inside else f"{SOURCE}/{name}"

    def linked(self, name: str, target: str) -> str | None:
        """Returns the file that a link in a file leads to; None if there is no such file."""
        found = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        return found if (self.root / found).is_file() else None


def _is_source(uri: str) -> bool:
    return uri.startswith(f"{SOURCE}/")


def _pages_of(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    entries = nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ()
    for entry in entries:
        yield from _pages_of(entry)
