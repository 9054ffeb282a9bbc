"""The pages about requests list the parameters that the containers take."""

import re
from pathlib import Path

import pytest

from containers.neuron.requests import QuestionParameters, SequenceParameters, TokenParameters
from containers.tensorrt.parameters import Parameters

NEURON = {*QuestionParameters._fields, *SequenceParameters._fields, *TokenParameters._fields}


@pytest.mark.parametrize(
    ("page", "names"),
    [("requests.md", set(Parameters._fields)), ("guides/neuron.md", NEURON)],
)
def test_a_page_lists_every_parameter(page: str, names: set[str]) -> None:
    text = Path("docs", page).read_text()
    [table] = re.findall(r"^\| parameter \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    first_cells = [row.split("|")[1] for row in table.splitlines()]
    assert {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)} == names
