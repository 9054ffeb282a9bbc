"""`slipway triton-repository`: a Triton model repository for one graph."""

from pathlib import Path
from typing import Annotated

import typer

from slipway.cli.output import current_project
from slipway.codes.code import Code
from slipway.errors import UserError

_DIRECTORY = "triton"


def triton_repository(
    name: Annotated[str, typer.Argument(help="Name of the model in Triton.")],
    graph: Annotated[
        Path, typer.Option(help="File of the graph: `.onnx`, or `.plan` of TensorRT.")
    ],
    max_batch_size: Annotated[
        int, typer.Option(min=0, max=1024, help="Most rows of a batch; 0 for no batches.")
    ] = 8,
    max_batch_delay_microseconds: Annotated[
        int, typer.Option(min=0, max=10_000_000, help="Longest wait of a request for others.")
    ] = 0,
    instance_group_count: Annotated[
        int, typer.Option(min=1, max=64, help="Copies on each GPU, or on the host without one.")
    ] = 1,
    warmup_length: Annotated[
        int | None,
        typer.Option(min=1, help="Size of the dynamic dimensions in the requests of the warm-up."),
    ] = None,
) -> None:
    """Write a Triton model repository for one graph, to own and to change."""
    from slipway.config.names import NAME_PATTERN
    from slipway.config.schema import is_model_name
    from slipway.publishing.families.triton.graph import Serving, write_repository

    project = current_project()
    if not is_model_name(name):
        raise UserError.of(
            Code.RESERVED_NAME,
            f"no model may be called {name!r}",
            f"Use at most 40 characters of the form {NAME_PATTERN}.",
        )
    shown = f"{_DIRECTORY}/{name}"
    directory = project.root / shown
    if directory.exists():
        raise UserError.of(
            Code.FILE_EXISTS, f"{shown} is there already", "Choose another name, or edit its files."
        )
    serving = Serving(
        max_batch_size, max_batch_delay_microseconds, instance_group_count, warmup_length
    )
    write_repository(directory, name, graph, serving)
    typer.echo(
        f"{shown} written. Next: `slipway init {name} --container triton --repository {shown}`."
    )
