"""The guide to scaling to zero, run from the page's own text as a reader copies it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import copy_project
from embedded_aws import control
from tests.support.page_runs import run_page
from tests.support.pages import ROOT, blocks

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(600)]

PAGE = ROOT / "docs" / "guides" / "scale-to-zero.md"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    copy_project(tmp_path)
    yield tmp_path
    control.stop(tmp_path)


def test_every_command_of_the_page_works(project: Path) -> None:
    run_page(PAGE, project)
    changed = project / "model_configs" / "gpt2-autocomplete.yaml"
    assert changed.read_bytes() == (ROOT / "model_configs" / changed.name).read_bytes()


def test_only_the_set_up_is_not_run() -> None:
    left_out = [block for block in blocks(PAGE) if block.labels not in (("run",), ("output",))]
    assert [block.text.splitlines()[0] for block in left_out] == ["make setup"]
