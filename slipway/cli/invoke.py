"""`slipway invoke`."""

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import output
from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError
from slipway.json_text import parse_json

# Imported when they are needed, because planning takes its time.
if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.access import Access
    from slipway.config.sections.endpoint import AsyncInference
    from slipway.operations.invoke.asynchronous import AsyncAnswer
    from slipway.operations.invoke.realtime import Answer, Request
    from slipway.planning.deployment import Deployment
    from slipway.planning.texts import TextProtocol

_JSON = "application/json"
# SageMaker's own limit for the computation of a queued request, InvocationTimeoutSeconds.
_DEFAULT_WAIT_SECONDS = 900.0
_REPORT_EVERY_SECONDS = 5.0
MEMBERS = {
    "--session-id": "SessionId",
    "--prefix-aware-id": "PrefixAwareId",
    "--inference-id": "InferenceId",
    "--custom-attributes": "CustomAttributes",
}
"""Members of InvokeEndpoint, by the options that set them."""
QUEUE_MEMBERS = {
    "--inference-id": "InferenceId",
    "--custom-attributes": "CustomAttributes",
    "--filename": "Filename",
    "--output-path-extension": "S3OutputPathExtension",
    "--request-ttl-seconds": "RequestTTLSeconds",
    "--invocation-timeout-seconds": "InvocationTimeoutSeconds",
}
"""Members of InvokeEndpointAsync, by the options that set them."""


def invoke(
    name: output.ModelArgument,
    body: Annotated[str | None, typer.Argument(help="The request, as JSON.")] = None,
    file: Annotated[
        str | None, typer.Option(help="File with the request; `-` is standard input.")
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Text for the model, in place of a request. Repeat it for a batch."),
    ] = None,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
    variant: Annotated[
        str | None, typer.Option(help="Production variant. Default: chosen by weight.")
    ] = None,
    content_type: Annotated[str, typer.Option(help="Content type of the request.")] = _JSON,
    accept: Annotated[str, typer.Option(help="Content type of the answer.")] = _JSON,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show the answer as it arrives, part by part.")
    ] = False,
    session_id: Annotated[
        str | None,
        typer.Option(
            help="Session of a stateful model; `NEW_SESSION` opens one, and its id is printed."
        ),
    ] = None,
    prefix_aware_id: Annotated[
        str | None,
        typer.Option(help="Keeps equal prefixes of different programs apart, to route by prefix."),
    ] = None,
    inference_id: Annotated[
        str | None, typer.Option(help="Id of the request in captured data.")
    ] = None,
    custom_attributes: Annotated[
        str | None, typer.Option(help="Text for the container, in a header of its own.")
    ] = None,
    inline: Annotated[
        bool,
        typer.Option(
            "--inline",
            help="Send the request in the call of an asynchronous endpoint, and not through S3: "
            "up to 128,000 bytes.",
        ),
    ] = False,
    filename: Annotated[
        str | None, typer.Option(help="Name of an asynchronous answer's object.")
    ] = None,
    output_path_extension: Annotated[
        str | None,
        typer.Option(help="Folder of an asynchronous answer's object, below the config's prefix."),
    ] = None,
    request_ttl_seconds: Annotated[
        int | None,
        typer.Option(
            help="Seconds that an asynchronous request may wait in the queue (default: 21,600).",
            min=60,
            max=21_600,
        ),
    ] = None,
    invocation_timeout_seconds: Annotated[
        int | None,
        typer.Option(
            help="Seconds that the container may compute an asynchronous request (default: 900).",
            min=1,
            max=3600,
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            help="Seconds to wait for an asynchronous endpoint's answer (default: 900), or for an "
            "endpoint that has scaled to zero (default: not at all).",
            min=1,
        ),
    ] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Send one request; the answer goes to standard output, its latency to standard error."""
    from slipway.access import open_access
    from slipway.operations.invoke import realtime
    from slipway.planning.component import SCALE_TO_ZERO
    from slipway.shared_endpoints import endpoint_name

    content = _request(name, body, file, text)
    if content_type == _JSON and not text:
        _check_json(content, file)
    project = output.current_project()
    environment = project.environment(env)
    protocol: TextProtocol | None = None
    if text:
        asked = f"{name}@{variant}"
        if asked not in project.published_names(name, environment):
            asked = name
        deployment = project.deployment(asked, environment)
        protocol = _text_protocol(deployment, content_type, stream=stream)
        try:
            asked_for = protocol.request(text, content_type)
        except UnicodeEncodeError:
            raise UserError.of(
                Code.NO_REQUEST, "a text is not UTF-8", "Send it in UTF-8, or as a `--file`."
            ) from None
        content, content_type = asked_for.body, asked_for.content_type
    mode, queue = realtime.mode_and_queue(project, name, environment.name)
    if wait is not None and mode == "realtime":
        raise output.wrong_options(
            f"`--wait` has no effect: {name} answers at once", "Leave out `--wait`."
        )
    access = open_access(environment, project.root)
    own = environment.stack_name(name)
    endpoint = endpoint_name(project, name, environment)
    component = own if mode == SCALE_TO_ZERO else None
    values = (
        session_id, prefix_aware_id, inference_id, custom_attributes, filename,
        output_path_extension, request_ttl_seconds, invocation_timeout_seconds,
    )  # fmt: skip
    members, is_queue = MEMBERS if queue is None else QUEUE_MEMBERS, queue is not None
    others = {"--variant": variant, "--stream": stream or None} if is_queue else {}
    options = dict(zip(MEMBERS | QUEUE_MEMBERS, values, strict=True)) | others
    options["--inline"] = None if is_queue else inline or None
    _check_options(options, members, "asynchronous" if is_queue else "not asynchronous")
    read = {name: value for name, value in options.items() if name in members}
    given = {members[name]: value for name, value in read.items() if value is not None}
    request = realtime.Request(endpoint, content, content_type, accept, variant, component, given)
    if stream and session_id == "NEW_SESSION":
        raise output.wrong_options(
            "SageMaker opens no session with a stream: its answer has no place for the id",
            "Leave out `--stream`, and use it with the id of the session.",
        )
    if queue is not None:
        limit = wait or _DEFAULT_WAIT_SECONDS
        _ask_queue(request, queue, access, limit, protocol, as_json=as_json, is_inline=inline)
        return

    def show_wait(waited_seconds: float) -> None:
        waited = f"{own} wakes: waited {waited_seconds:.0f} of {wait:g} s"
        typer.echo(waited, err=True)

    waiting = None if wait is None else realtime.Wait(wait, show_wait)
    streamed: realtime.StreamAnswer | None = None
    if stream:
        show = (lambda _part: None) if as_json else _write
        streamed = realtime.invoke_stream(request, access, show, waiting)
        answer = streamed.answer
    else:
        answer = realtime.invoke(request, access, waiting)
    texts = None if protocol is None else _texts(protocol, answer)
    milliseconds = answer.latency_seconds * 1000
    first_milliseconds = streamed.first_part_seconds * 1000 if streamed else None
    if as_json:
        document = {
            "answer": _content(answer.body, answer.content_type) if texts is None else texts,
            "content_type": answer.content_type,
            "variant": answer.variant,
            "latency_milliseconds": round(milliseconds, 3),
            "request_id": answer.request_id,
        }
        if answer.session_id is not None:
            document["session_id"] = answer.session_id
        if wait is not None:
            document["waited_seconds"] = round(answer.waited_seconds, 3)
        if first_milliseconds is not None:
            document["first_part_milliseconds"] = round(first_milliseconds, 3)
        output.print_json(document)
        return
    _print(answer.body, texts, is_shown=streamed is not None)
    first = "" if first_milliseconds is None else f", the first part after {first_milliseconds:.1f}"
    typer.echo(
        f"{answer.variant} answered in {milliseconds:.1f} ms{first} (request {answer.request_id})"
        + (f"; session {answer.session_id}" if answer.session_id else ""),
        err=True,
    )


def _ask_queue(
    request: "Request",
    queue: "AsyncInference",
    access: "Access",
    limit_seconds: float,
    protocol: "TextProtocol | None",
    *,
    as_json: bool,
    is_inline: bool,
) -> None:
    from slipway.operations.invoke.asynchronous import invoke_async

    told_seconds = 0.0

    def show(passed_seconds: float) -> None:
        nonlocal told_seconds
        if passed_seconds - told_seconds >= _REPORT_EVERY_SECONDS:
            told_seconds = passed_seconds
            waited = f"{request.endpoint_name}: no answer after {passed_seconds:.0f} s"
            typer.echo(waited, err=True)

    answer = invoke_async(
        request, queue, access, limit_seconds=limit_seconds, show=show, is_inline=is_inline
    )
    texts = None if protocol is None else _texts(protocol, answer)
    if as_json:
        output.print_json(
            {
                "answer": _content(answer.body, answer.content_type) if texts is None else texts,
                "content_type": answer.content_type,
                "waited_milliseconds": round(answer.waited_seconds * 1000, 3),
                "inference_id": answer.inference_id,
                "input_location": answer.input_location,
                "output_location": answer.output_location,
            }
        )
        return
    _print(answer.body, texts)
    typer.echo(f"answered after {answer.waited_seconds:.1f} s: {answer.output_location}", err=True)


def _check_options(
    options: "Mapping[str, str | int | None]", members: "Mapping[str, str]", mode: str
) -> None:
    """Refuses empty options, and those that a mode has no use for; raises `UserError`."""
    found = [
        (f"`{option}` has no effect: the endpoint is {mode}", f"Leave out `{option}`.")
        if option not in members
        else (f"`{option}` is empty", "Give it a value, or leave it out.")
        for option, value in options.items()
        if value == "" or (value is not None and option not in members)
    ]
    if found:
        raise UserError([Problem(Code.WRONG_OPTIONS, Kind.STATE, *each) for each in found])


def _print(body: bytes, texts: list[str] | None, *, is_shown: bool = False) -> None:
    """Prints an answer, and on a terminal the end of its last line."""
    if texts is not None:
        _write("".join(f"{text}\n" for text in texts).encode())
        return
    if not is_shown:
        _write(body)
    if sys.stdout.isatty() and not body.endswith(b"\n"):
        _write(b"\n")


def _write(part: bytes) -> None:
    sys.stdout.buffer.write(part)
    sys.stdout.flush()


def _text_protocol(deployment: "Deployment", content_type: str, *, stream: bool) -> "TextProtocol":
    """Returns how the model takes texts; raises `UserError` where it does not."""
    protocol, name = deployment.text_protocol, deployment.config.name
    if stream:
        raise output.wrong_options(
            "`--stream` shows parts of an answer, and `--text` needs the whole of it",
            "Leave out one of the two.",
        )
    if protocol is None:
        raise output.wrong_options(
            f"`--text` does not fit {name}: requests of the container `{deployment.container}` "
            "have a form of their own",
            f"Give the whole request: `slipway invoke {name} --file request.json`.",
        )
    if content_type not in protocol.content_types:
        raise UserError.of(
            Code.UNKNOWN_CHOICE,
            f"`--text` is not sent as {content_type}",
            f"Choose a `--content-type`: {', '.join(protocol.content_types)}.",
        )
    return protocol


def _texts(protocol: "TextProtocol", answer: "Answer | AsyncAnswer") -> list[str]:
    from slipway.planning.texts import NotTextsError

    try:
        return protocol.answers(answer.body, answer.content_type)
    except NotTextsError as error:
        raise UserError.of(
            Code.NO_ANSWER,
            f"the answer has no texts: {error}",
            "Leave out `--text`, and give the request as a `--file`, to see the whole answer.",
        ) from None


def _request(name: str, body: str | None, file: str | None, text: list[str] | None) -> bytes:
    given = [each for each in (body, file, text or None) if each is not None]
    if len(given) != 1:
        what = "two requests are given" if given else "no request is given"
        raise UserError.of(
            Code.NO_REQUEST,
            what,
            f"""Give one: `slipway invoke {name} '{{"inputs": "The"}}'`, or """
            f"`slipway invoke {name} --file request.json`.",
        )
    if text:
        # What becomes of it depends on the container.
        return b""
    if body is not None:
        return body.encode()
    if file == "-":
        return sys.stdin.buffer.read()
    path = Path(str(file))
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError.of(
            Code.NO_REQUEST,
            f"{path} cannot be read: {error.strerror}",
            "Name a file with the request.",
        ) from None


def _check_json(request: bytes, file: str | None) -> None:
    """Checks the request as JSON, because the container could only call it a bad request."""
    place = file if file and file != "-" else "the request"
    remedy = "Send valid JSON, or name another `--content-type`."
    try:
        json.loads(request)
        return
    except RecursionError:
        return  # The container says how deep a request may be nested.
    except json.JSONDecodeError as error:
        message, location = error.msg, Location(place, error.lineno, error.colno)
    except UnicodeDecodeError as error:
        message, location = f"byte {error.start} is not {error.encoding}", Location(place)
    problem = Problem(Code.NOT_JSON, Kind.SHAPE, f"not JSON: {message}", remedy)
    raise UserError([problem.at(location)])


def _content(body: bytes, content_type: str) -> Any:
    text = body.decode(errors="replace")
    if content_type.partition(";")[0].strip() == _JSON:
        with contextlib.suppress(ValueError):
            return parse_json(text)
    return text
