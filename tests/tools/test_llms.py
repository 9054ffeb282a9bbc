"""The site's index for language models."""

from tools.docs_site.hooks import texts

NAV = [
    {"Start": [{"Overview": "index.md"}]},
    {"Guides": [{"LMI": "guides/lmi.md"}, {"More": ["guides/more.md"]}]},
    {"Project": ["last.md", {"Measured": [{"Method": "source/method.md"}]}]},
]
HEAD = "# Slipway\n\n> Endpoints as code\n"
PAGES = {
    "index.md": "# Slipway\n\nSlipway deploys [models](a.md) as\ncode. It is one file.\n",
    "guides/lmi.md": "# A **guide**\n\nFor anyone who serves. This page says how. And why.\n",
    "guides/more.md": "# More\n\n```sh\nmake\n```\n\n| a |\n|---|\n\n`make` makes it.\n",
    "last.md": "No heading\n",
    "source/method.md": "# Method\n\n## Only headings\n",
}


def test_the_index_has_the_form_of_the_standard():
    assert (
        texts(HEAD, NAV, PAGES, "")[0]
        == """\
# Slipway

> Endpoints as code

## Start

- [Slipway](index.md): Slipway deploys models as code.

## Guides

- [A guide](guides/lmi.md): For anyone who serves. This page says how.
- [More](guides/more.md): `make` makes it.

## Project

- [last.md](last.md): No heading

## Optional

- [Method](source/method.md)
"""
    )


def test_links_are_absolute_where_the_site_has_an_address():
    found, _ = texts(HEAD, NAV, PAGES, "https://example.com/docs/")
    assert "(https://example.com/docs/guides/lmi.md)" in found


def test_the_full_text_has_every_page_but_the_optional_ones():
    _, found = texts(HEAD, NAV, PAGES, "")
    assert found.startswith("# Slipway\n\n> Endpoints as code\n")
    assert found.index("Source: index.md") < found.index("Source: guides/more.md")
    assert "This page says how. And why." in found
    assert "Method" not in found
