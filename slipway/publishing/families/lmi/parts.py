"""What the partition command of an LMI image wrote, held against what Slipway will publish.

The command leaves a serving.properties of its own beside the parts, and ends well in cases in which
there are none. The server would find that out when it loads them.
"""

import fnmatch
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError
from slipway.facts.lmi.partition import PartitionMethod
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.partitioning import PROPERTIES_FILE
from slipway.planning.lock import Accuracy
from slipway.publishing.objects import objects_under, read_text
from slipway.publishing.packaging import Inspection
from slipway.publishing.training import LOG_GROUP
from slipway.s3_address import S3Address

_FIELD = ("artifacts", "compile")


def parts_inspection(lmi: Lmi) -> Inspection:
    found = lmi.asked_partitioning
    # Where the parts will lie is of no interest here.
    published = lmi.properties("s3://bucket/")
    degree = found.setup.serving.tensor_parallel_degree

    def inspect(client: Any, job: str, uri: str) -> Accuracy | None:
        problems = [
            Problem(
                Code.JOB_OUTPUT,
                Kind.STATE,
                f"the training job {job} {what}",
                f"Its log says more: {LOG_GROUP}, streams {job}/. Without `compile` the weights "
                "are split when they are loaded.",
                _FIELD,
            )
            for what in _faults(client, S3Address.of(uri), found.method, published, degree)
        ]
        if problems:
            raise UserError(problems)
        return None

    return inspect


def _faults(
    client: Any,
    prefix: S3Address,
    method: PartitionMethod,
    published: Mapping[str, str],
    degree: int,
) -> Iterator[str]:
    try:
        paths = {item.path for item in objects_under(client, prefix)}
    except UserError:
        yield "ended well and wrote nothing"
        return
    wanted = {*method.files, *([PROPERTIES_FILE] if method.writes else [])}
    missing = sorted(each for each in wanted if not fnmatch.filter(paths, each))
    if missing:
        yield f"ended well, and what it wrote lacks {', '.join(missing)}"
        return
    if method.writes:
        written = written_properties(read_text(client, prefix, PROPERTIES_FILE))
        yield from differences(written, published, method.writes)
    if method.index is not None:
        yield from index_faults(
            read_text(client, prefix, method.index), method.index, paths, degree
        )


def written_properties(text: str) -> dict[str, str]:
    """Reads the file that the command wrote: a key and a value on each line, without escapes."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def differences(
    written: Mapping[str, str], published: Mapping[str, str], keys: Collection[str]
) -> Iterator[str]:
    """Yields what the parts were made for that is not what will be served.

    `keys` are those that the command writes and that say how the parts are loaded. Python writes
    `True` where Java reads `true`.
    """
    for key in keys:
        ours, theirs = published.get(key), written.get(key)
        if ours is None or theirs is None or ours.lower() != theirs.lower():
            meant, has = ("nothing" if value is None else f"`{value}`" for value in (ours, theirs))
            yield (
                f"wrote {PROPERTIES_FILE} with {has} for {key}, and the one that is published has "
                f"{meant}"
            )


def index_faults(text: str, name: str, paths: Collection[str], degree: int) -> Iterator[str]:
    """Yields what is wrong with DeepSpeed's list of its parts."""
    try:
        content = json.loads(text)
        checkpoints = content["checkpoints"]
        parts = [*checkpoints["non_tp"], *checkpoints["tp"]]
        made_for = content["tp_size"]
    except (ValueError, LookupError, TypeError) as error:
        yield f"wrote {name}, which is no list of parts: {type(error).__name__}: {error}"
        return
    if content.get("base_dir"):
        yield (
            f"wrote {name} with the directory `{content['base_dir']}`, in which the server would "
            "look for the parts"
        )
    if made_for != degree:
        yield f"wrote {name} for {made_for} GPUs, and the parts are served on {degree}"
    lost = sorted(str(each) for each in parts if each not in paths)
    if lost:
        yield f"wrote {name} with parts that are not there: {', '.join(lost)}"
