"""The table of codes: `slipway explain`, SARIF and the pages under docs/troubleshooting read it."""

import difflib
import re
from collections.abc import Sequence
from functools import cache

from slipway.codes import (
    account,
    combinations,
    compiled,
    files,
    lmi,
    neuron,
    project,
    publishing,
    running,
    values,
)
from slipway.codes.code import Code
from slipway.codes.entry import Entry, Group

_NEAREST = 3

GROUPS: Sequence[Group] = (
    Group(
        101,
        199,
        "files",
        "The form of a file",
        "These problems are about the form of `model_configs/NAME.yaml`, of environments.yaml, or "
        "of a request. Every command that reads the file reports them, with line and column.",
        files.ENTRIES,
    ),
    Group(
        201,
        299,
        "values",
        "A value",
        "These problems are about one value in a file or option. The message shows the value, and "
        "the limit or the allowed values.",
        values.ENTRIES,
    ),
    Group(
        301,
        339,
        "combinations",
        "Values that do not go together",
        "Each value is valid by itself, and the deployment would fail or ignore one of them. "
        "`slipway validate`, `slipway plan` and `cdk synth` report these problems before anything "
        "is deployed. The engines have pages of their own.",
        combinations.ENTRIES,
    ),
    Group(
        340,
        374,
        "lmi",
        "Settings of the LMI container",
        "These problems are about `serving.container: lmi`. The [LMI guide](../guides/lmi.md) "
        "describes the container.",
        lmi.ENTRIES,
    ),
    Group(
        375,
        386,
        "neuron",
        "Settings for Inferentia and Trainium",
        "These problems are about Neuron devices. The [guide](../guides/neuron.md) describes the "
        "container.",
        neuron.ENTRIES,
    ),
    Group(
        387,
        399,
        "compiled",
        "TensorRT, Triton and compiling",
        "These problems are about the TensorRT and Triton containers, and about models that are "
        "compiled for one kind of hardware. The [TensorRT guide](../guides/tensorrt.md) describes "
        "both.",
        compiled.ENTRIES,
    ),
    Group(
        401,
        499,
        "project",
        "The project and the command line",
        "These problems are about the project's folder, the lock files that `slipway publish` "
        "writes, and the options of a command.",
        project.ENTRIES,
    ),
    Group(
        501,
        599,
        "account",
        "The account and its stacks",
        "These problems are about credentials, quotas, and resources that a deployment needs "
        "first. `slipway preflight NAME --env ENV` finds most of them before a deployment.",
        account.ENTRIES,
    ),
    Group(
        601,
        699,
        "publishing",
        "Publishing and training jobs",
        "`slipway publish` reports these problems. After the remedy, run the same command again: "
        "it continues where it stopped.",
        publishing.ENTRIES,
    ),
    Group(
        701,
        799,
        "running",
        "A running endpoint",
        "`slipway invoke` and `slipway status` report these problems.",
        running.ENTRIES,
    ),
)


def number(code: Code) -> int:
    """Returns the number of a code: 201 for SW201."""
    return int(code.removeprefix("SW"))


@cache
def entries() -> dict[Code, Entry]:
    """Returns every entry by its code, in the order of the numbers."""
    return {entry.code: entry for group in GROUPS for entry in group.entries}


def group_of(code: Code) -> Group:
    """Returns the group that a code belongs to."""
    return next(group for group in GROUPS if group.first <= number(code) <= group.last)


def nearest_codes(text: str) -> list[Code]:
    """Returns up to three codes that a text may have meant, the likeliest first."""
    digits = re.sub(r"\D", "", text)[:3]
    if digits:
        wanted = int(digits.ljust(3, "0"))
        return sorted(Code, key=lambda code: abs(number(code) - wanted))[:_NEAREST]
    names = {code.name: code for code in Code}
    word = re.sub(r"\W+", "_", text.upper())
    return [names[name] for name in difflib.get_close_matches(word, names, n=_NEAREST)]
