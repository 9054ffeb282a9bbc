"""The pages about requests list the parameters that the containers take."""

import re
from pathlib import Path

import pytest

from containers.encoders.requests import QuestionParameters, SequenceParameters, TokenParameters
from containers.tensorrt.openai.requests import OpenAiRequests
from containers.tensorrt.parameters import Parameters, RequestLimits
from containers.tensorrt.settings import GenerationSettings

LIMITS = RequestLimits(GenerationSettings())
NEURON = {*QuestionParameters._fields, *SequenceParameters._fields, *TokenParameters._fields}


OPENAI = {
    name
    for form in (OpenAiRequests(LIMITS).completion, OpenAiRequests(LIMITS).chat)
    for name, kind in form.kinds.items()
    if kind.is_offered
}


@pytest.mark.parametrize(
    ("page", "heading", "names"),
    [
        ("requests.md", "parameter", set(Parameters._fields)),
        ("requests.md", "field", OPENAI),
        ("guides/neuron.md", "parameter", NEURON),
    ],
)
def test_a_page_lists_every_parameter(page: str, heading: str, names: set[str]) -> None:
    text = Path("docs", page).read_text()
    [table] = re.findall(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    first_cells = [row.split("|")[1] for row in table.splitlines()]
    assert {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)} == names
