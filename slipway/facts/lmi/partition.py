"""How the images of LMI partition weights in a training job, and what they write.

`lmi_frameworks.json` says which command an image has. `lmi_partition.json` has everything that
decides in a job: arguments, options that the parts depend on, and files beside them. It also has
the settings with which the server loads the parts. Each row names its source in djl-serving or in
the framework.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from slipway.facts.lmi.frameworks import row_of
from slipway.facts.lmi.options import cells_of, table_of


@dataclass(frozen=True, slots=True)
class PartitionMethod:
    """How one framework in one version of DJL Serving partitions ahead of time.

    Args:
        source: where that stands.
        refused: why its result cannot be used, as half a sentence after the framework's name; None
            where it can. All that follows is empty then.
        engine: the value of `engine` that it needs; None where it is not told one, and takes the
            settings of the model alone.
        arguments: of the container, with `{settings}`, `{weights}` and `{output}` for directories,
            and the names of degrees.
        options: the options that decide what it writes; None: all of them.
        adds: options with which the server loads what it wrote.
        writes: keys of the serving.properties that it writes beside the parts.
        index: the JSON file that lists the parts; None where none does.
        files: what is there after a good end, as patterns of paths.
        model_types: the families, as Hugging Face's `model_type`, whose parts load again; None
            where no source limits them.
        least_degree: from this tensor parallel degree on there is something to gain.
        refused_options: options that do not go with it, and why, as half a sentence.
    """

    source: str
    refused: str | None = None
    engine: str | None = None
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] | None = ()
    adds: Mapping[str, str] = field(default_factory=dict)
    writes: tuple[str, ...] = ()
    index: str | None = None
    files: tuple[str, ...] = ()
    model_types: tuple[str, ...] | None = None
    least_degree: int = 1
    refused_options: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def partition_method(framework: str, version: str) -> PartitionMethod | None:
    """Returns how a framework partitions ahead of time; None where it does not."""
    table = table_of("lmi/lmi_partition.json")
    row = row_of(table["frameworks"].get(framework, ()), version)
    return None if row is None else PartitionMethod(**cells_of(row))
