"""The table of networks: what is committed is what the pinned Transformers gives."""

import json

import pytest

from tests.support.groups import TORCH_MARKS, load
from tools.refresh_facts.tables import FACTS, render

networks = load("tools.refresh_facts.networks", group="torch")

pytestmark = [*TORCH_MARKS]


@pytest.mark.size("deep")
def test_the_committed_table_is_what_its_script_writes():
    committed = (FACTS / "networks.json").read_text("utf-8")
    dated = {"as_of": json.loads(committed)["as_of"], **networks.make()}
    assert render(dated, levels=2) == committed, "run `python -m tools.refresh_facts.networks`"


def test_layers_repeat_in_the_shortest_unit():
    assert networks._unit(["a", "a", "b"] * 4) == ["a", "a", "b"]
    assert networks._unit(["a"] * 5) == ["a"]
    assert networks._unit(["a", "a", "b", "a"]) == []
