"""MkDocs hooks: the site also has the files beside `docs/` that its pages link to.

A page links to a file of the repository by its relative path, as a code host shows it. The site
puts each such file below `source/`: Markdown as a page, anything else as it is.
"""

import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

SOURCE = "source"
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
# The words behind a block's language are for the tests; MkDocs does not know them.
_LABELS = re.compile(r"^(\s*```\w+) [\w -]+$", re.MULTILINE)
# Around the tables that tools.reference writes.
_MARKS = re.compile(r"^<!-- (?:begin .+|end) -->\n\n?", re.MULTILINE)


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
    """Returns a page's text with links as the site needs them, and without labels and marks.

    Args:
        markdown: the page's text in the repository.
        page: gives the page's place, from which links are relative.
        config: gives the folders of the repository and the site.
        files: not used; MkDocs passes it to every such hook.
    """
    tree = _Tree(config)
    here = page.file.src_uri

    def in_site(match: re.Match[str]) -> str:
        linked = tree.linked(tree.in_repository(here), match[1])
        if linked is None:
            return match[1]  # MkDocs reports it
        return os.path.relpath(tree.in_site(linked), posixpath.dirname(here) or ".")

    return _MARKS.sub("", _LABELS.sub(r"\1", _LINK.sub(in_site, markdown)))


class _Tree:
    """Maps paths in the repository to paths in the site, and back."""

    def __init__(self, config: MkDocsConfig) -> None:
        self.root = Path(config.config_file_path).parent
        self._docs = Path(config.docs_dir).relative_to(self.root).as_posix()

    def in_repository(self, uri: str) -> str:
        """Returns the path of a site's file in the repository."""
        if _is_source(uri):
            return uri.removeprefix(f"{SOURCE}/")
        return posixpath.join(self._docs, uri)

    def in_site(self, name: str) -> str:
        """Returns the path of a repository's file in the site."""
        inside = name.startswith(f"{self._docs}/")
        return name.removeprefix(f"{self._docs}/") if inside else f"{SOURCE}/{name}"

    def linked(self, name: str, target: str) -> str | None:
        """Returns the file that a link in a file leads to; None if there is no such file."""
        found = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        return found if (self.root / found).is_file() else None


def _is_source(uri: str) -> bool:
    return uri.startswith(f"{SOURCE}/")


def _pages_of(nav: object) -> list[str]:
    """Returns the pages that a navigation names, at any depth."""
    if isinstance(nav, str):
        return [nav]
    entries = nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else []
    return [page for entry in entries for page in _pages_of(entry)]
