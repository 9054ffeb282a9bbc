"""The quickstart, run from the page's own text as a reader copies it."""

from pathlib import Path

import pytest

from demo import copy_project
from slipway.embedded_aws import control
from tests.support.page_runs import PREPARATION, run_page
from tests.support.pages import ROOT, blocks

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(600)]

PAGE = ROOT / "docs" / "quickstart.md"


@pytest.fixture
def project(tmp_path: Path):
    copy_project(tmp_path)
    yield tmp_path
    control.stop(tmp_path)


def test_every_command_of_the_page_works(project: Path) -> None:
    printed = run_page(PAGE, project, prepares_by_cli=True)
    assert "Nothing is left of gpt2-autocomplete in local" in printed
    changed = project / "model_configs" / "gpt2-autocomplete.yaml"
    assert changed.read_bytes() == (ROOT / "model_configs" / changed.name).read_bytes()


def test_it_prepares_the_account_as_other_pages_do() -> None:
    """Their tests leave the CDK CLI out there."""
    assert PREPARATION in PAGE.read_text("utf-8")


def test_only_the_set_up_is_not_run() -> None:
    left_out = [block for block in blocks(PAGE) if block.labels not in (("run",), ("output",))]
    assert [block.text.splitlines()[0] for block in left_out] == ["make setup"]
