"""The documentation site: every link and every anchor leads somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import ROOT

pytestmark = pytest.mark.size("all")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_it_has_the_pages_and_the_files_that_they_link_to(site: Path) -> None:
    for name in (
        "index.html",
        "quickstart.html",
        "commands.html",
        "source/CONTRIBUTING.html",
        "source/model_configs/gpt-j-6b.yaml",
    ):
        assert (site / name).is_file(), name


def test_labels_of_blocks_are_not_shown(site: Path) -> None:
    page = (site / "quickstart.html").read_text("utf-8")
    assert "slipway local start" in re.sub(r"<[^>]+>", "", page)
    assert "```" not in page
    assert "sh run" not in page


def test_the_index_for_language_models_lists_each_page(site: Path) -> None:
    text = (site / "llms.txt").read_text("utf-8")
    assert text.startswith("# Slipway\n\n> SageMaker endpoints as code, in Python\n")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", text, re.MULTILINE)
    assert [link for link in links if not (site / link).is_file()] == []
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(links)
    assert len(links) == len(set(links))


def test_links_of_a_pages_markdown_lead_to_files_of_the_site(site: Path) -> None:
    page = site / "guides" / "neuron.md"
    found = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
    assert len(found) > 3
    assert [link for link in found if not (page.parent / link).is_file()] == []
    full = (site / "llms-full.txt").read_text("utf-8")
    assert "# BERT on Inferentia: throughput or latency" in full


def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        sources = re.findall(r"<(?:script|img|iframe)\b[^>]*\bsrc=\"([^\"]+)\"", text)
        sources += re.findall(r"<link\b[^>]*rel=\"(?:stylesheet|icon|preconnect)\"[^>]*>", text)
        assert [source for source in sources if "//" in source] == [], path
