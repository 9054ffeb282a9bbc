"""How the endpoint of a model is asked, by the model's file."""

from slipway.config.load import InvalidConfigError
from slipway.config.sections.base import UnknownValueError
from slipway.config.sections.endpoint import AsyncInference
from slipway.errors import UserError
from slipway.project import Project


def mode_and_queue(
    project: Project, name: str, environment: str
) -> tuple[str | None, AsyncInference | None]:
    """Returns the endpoint's mode and its queue by the model's file; None if nothing tells them.

    An endpoint can be asked although its config is gone or has mistakes elsewhere.
    """
    mode = None
    try:
        config = project.config(name, environment).config
        mode = config.endpoint.mode
    except InvalidConfigError as error:
        config = error.known
    except UserError:
        return None, None
    try:
        queue = config.endpoint.queue
        # What a request needs must be known.
        return mode, queue if queue and (queue.input, queue.input_key_arn) else None
    except UnknownValueError:
        return mode, None
