"""Guides whose commands run from the page's own text, as a reader copies them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import copy_project
from slipway.embedded_aws import control
from tests.support.djl_stand_in import write_home
from tests.support.page_runs import run_page
from tests.support.pages import ROOT, blocks

NAMES = ("adapters", "async", "scale-to-zero", "several-models", "shadow", "variants")
GUIDES = [ROOT / "docs" / "guides" / f"{name}.md" for name in NAMES]

of_each_guide = pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, value in write_home(tmp_path.with_name("djl-serving")).items():
        monkeypatch.setenv(name, value)
    copy_project(tmp_path)
    yield tmp_path
    control.stop(tmp_path)


@of_each_guide
@pytest.mark.cdk
@pytest.mark.size("all")
@pytest.mark.timeout(600)
def test_every_command_of_the_page_works(page: Path, project: Path) -> None:
    run_page(page, project)
    changed = project / "model_configs" / "gpt2-autocomplete.yaml"
    assert changed.read_bytes() == (ROOT / "model_configs" / changed.name).read_bytes()


@of_each_guide
def test_only_the_set_up_is_not_run(page: Path) -> None:
    left_out = [
        block
        for block in blocks(page)
        # A part of a config is planned by test_blocks.py.
        if block.labels not in (("run",), ("output",)) and block.labels[:2] != ("part", "of")
    ]
    assert [block.text.split()[:2] for block in left_out] == [["make", "setup"]]
