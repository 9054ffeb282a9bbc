"""The facts of partitioning ahead of time: whole, and in step with those of the frameworks."""

import string

import pytest

from slipway.facts.lmi.frameworks import (
    framework_versions,
    partition_framework,
    partition_frameworks,
)
from slipway.facts.lmi.partition import partition_method

EVERY = [(name, version) for name in partition_frameworks() for version in framework_versions(name)]
USABLE = [
    (name, version)
    for name, version in EVERY
    if (method := partition_method(name, version)) is not None and method.refused is None
]
PLACES = {
    "settings", "weights", "output", "tensor_parallel_degree", "pipeline_parallel_degree",
}  # fmt: skip


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_there_is_a_method_where_there_is_a_command(name, version):
    ahead = partition_framework(name, version).ahead_of_time
    assert (partition_method(name, version) is None) == (ahead is None)


@pytest.mark.parametrize(("name", "version"), USABLE)
def test_the_arguments_are_the_command_and_flags_it_has(name, version):
    method = partition_method(name, version)
    ahead = partition_framework(name, version).ahead_of_time
    assert method.arguments[: len(ahead.command)] == ahead.command
    rest = method.arguments[len(ahead.command) :]
    assert set(rest[::2]) <= set(ahead.flags)
    assert method.engine == ahead.engine
    named = {field for argument in rest for _, field, _, _ in string.Formatter().parse(argument)}
    assert named - {None} <= PLACES


def test_which_versions_can():
    def usable(name: str) -> tuple[str, str]:
        versions = [version for each, version in USABLE if each == name]
        return versions[0], versions[-1]

    assert {name for name, _ in USABLE} == {"fastertransformer", "deepspeed", "tensorrt-llm"}
    assert usable("fastertransformer") == ("0.22.1", "0.24.0")
    assert usable("deepspeed") == ("0.22.1", "0.27.0")
    assert usable("tensorrt-llm") == ("0.25.0", "0.33.0")


def test_deepspeed_loads_llama_from_0_11():
    before, after = (partition_method("deepspeed", version) for version in ("0.24.0", "0.25.0"))
    assert set(after.model_types) - set(before.model_types) == {"llama"}


def test_what_is_unknown_has_no_method():
    assert partition_method("vllm", "0.36.0") is None
    assert partition_method("no-such", "0.36.0") is None
