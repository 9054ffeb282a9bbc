"""The documentation site: every link and every anchor leads somewhere."""

from __future__ import annotations

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
        "commands/publish.html",
        "source/CONTRIBUTING.html",
        "source/model_configs/gpt-j-6b.yaml",
    ):
        assert (site / name).is_file(), name


def test_labels_of_blocks_are_not_shown(site: Path) -> None:
    page = (site / "quickstart.html").read_text("utf-8")
    assert "slipway local start" in re.sub(r"<[^>]+>", "", page)
    assert "```" not in page
    assert "sh run" not in page


def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        sources = re.findall(r"<(?:script|img|iframe)\b[^>]*\bsrc=\"([^\"]+)\"", text)
        sources += re.findall(r"<link\b[^>]*rel=\"(?:stylesheet|icon|preconnect)\"[^>]*>", text)
        assert [source for source in sources if "//" in source] == [], path
