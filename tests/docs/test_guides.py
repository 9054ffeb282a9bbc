"""Pages whose commands run from their own text, as a reader copies them."""

from pathlib import Path

import pytest

from tests.support.djl_stand_in import write_home
from tests.support.page_runs import PREPARATION, run_page
from tests.support.pages import ROOT, blocks

NAMES = ("adapters", "async", "scale-to-zero", "several-models", "shadow", "variants")
QUICKSTART = ROOT / "docs" / "quickstart.md"
PAGES = [QUICKSTART, *(ROOT / "docs" / "guides" / f"{name}.md" for name in NAMES)]

of_each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@of_each_page
@pytest.mark.cdk
@pytest.mark.size("all")
@pytest.mark.timeout(600)
def test_every_command_of_the_page_works(
    page: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in write_home(project.with_name("djl-serving")).items():
        monkeypatch.setenv(name, value)
    printed = run_page(page, project, prepares_by_cli=page == QUICKSTART)
    assert page != QUICKSTART or "Nothing is left of gpt2-autocomplete in local" in printed
    changed = project / "model_configs" / "gpt2-autocomplete.yaml"
    assert changed.read_bytes() == (ROOT / "model_configs" / changed.name).read_bytes()


def test_the_quickstart_prepares_the_account_as_other_pages_do() -> None:
    """Their tests leave the CDK CLI out there."""
    assert PREPARATION in QUICKSTART.read_text("utf-8")


@of_each_page
def test_only_the_set_up_is_not_run(page: Path) -> None:
    left_out = [
        block
        for block in blocks(page)
        # A part of a config is planned by test_blocks.py.
        if block.labels not in (("run",), ("output",)) and block.labels[:2] != ("part", "of")
    ]
    assert [block.text.split()[:2] for block in left_out] == [["make", "setup"]]
