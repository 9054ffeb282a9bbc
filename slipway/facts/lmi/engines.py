"""What the engines of LMI images serve: classes of networks, and methods of quantisation.

`python -m tools.refresh_facts.engines` writes the table from the engines' own registries and names
its sources. Engines have their names of lmi_frameworks.json, such as `vllm`. Versions are those of
DJL Serving, GPUs are compute capabilities, and an architecture is a class such as
`Qwen3MoeForCausalLM`.
"""

from collections.abc import Mapping
from typing import Any

from slipway.facts.instances import architecture
from slipway.facts.lmi.options import covers, rows_of, table_of

# vLLM runs what it has no code for with Transformers, where their class can be run so.
_WITH = {"vllm": ("vllm", "transformers")}
_WRITERS = ("ForCausalLM", "ForConditionalGeneration")
# The handler loads every other model with Optimum, whose models no table has.
_ONLY = {"transformers-neuronx": "CausalLM"}
# Names of checkpoints and of other handlers, where vLLM has another for the same method.
_METHODS = {
    "bitsandbytes4": "bitsandbytes",
    "bitsandbytes8": "bitsandbytes",
    "nvfp4": "modelopt_fp4",
}


def _table() -> Mapping[str, Any]:
    return table_of("lmi/lmi_engines.json")


def family_architectures(family: str) -> tuple[str, ...]:
    """Returns the classes of a `model_type`, with `_` for `-`; none where no source says."""
    return tuple(_table()["families"].get(family, ()))


def serves(engine: str, version: str, architecture: str) -> bool | None:
    """Returns whether an engine has code for a class of networks; None where no source says."""
    if engine not in _table()["architectures"] or _ONLY.get(engine, "") not in architecture:
        return None
    found = [_table()["architectures"][name] for name in _WITH.get(engine, (engine,))]
    if not any(_covered(spans, version) for spans in found[0].values()):
        return None
    names = [{architecture}, {architecture}]
    if engine in _WITH:
        # An adapter makes an embedding model or a classifier of a network that writes.
        ends = [end for end, spans in _table()["suffixes"].items() if _covered(spans, version)]
        stems = [architecture.removesuffix(end) for end in ends if architecture.endswith(end)]
        names[0] |= {stem + end for stem in stems for end in ends}
        # What writes through Transformers' code does so as the class that it is.
        names[1] |= set() if architecture.endswith(_WRITERS) else names[0]
    rows = (
        table.get(each, ()) for table, known in zip(found, names, strict=False) for each in known
    )
    return any(_covered(spans, version) for spans in rows)


def runs_remote_code(engine: str, version: str) -> bool:
    """Returns whether an engine can run a network that only the checkpoint has code for."""
    return engine in _WITH and version in _table()["transformers"]


def quantization_method(name: str) -> str:
    """Returns the name that engines have for a method, with `_` for `-`."""
    name = name.replace("-", "_")
    return _METHODS.get(name, name)


def least_capability(engine: str, version: str, method: str) -> str | None:
    """Returns the compute capability that a method needs, such as `sm80`; None where none is known.

    The method has the engine's name, as `quantization_method` returns it.
    """
    found = rows_of(_table()["quantization"].get(engine, {}).get(method, ()), version)
    return str(found[0]["least"]) if found else None


def loads(engine: str, version: str, method: str, gpu: str | None = None) -> bool:
    """Returns whether an engine has a method, and kernels for a GPU if one is given."""
    least = least_capability(engine, version, method)
    return least is not None and (gpu is None or architecture(gpu) >= architecture(least))


def _covered(spans: Any, version: str) -> bool:
    return any(covers(span, version) for span in spans)
