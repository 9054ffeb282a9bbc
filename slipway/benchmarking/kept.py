"""What of a run is kept beside the model's lock, and what the endpoint served while it ran."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from slipway.benchmarking.endpoint import Endpoint
from slipway.benchmarking.results import Document
from slipway.codes.code import Code
from slipway.deployed.calls import describe_endpoint, described_config
from slipway.deployed.described import containers_of
from slipway.deployed.served import model_of, served_by
from slipway.errors import UserError
from slipway.sizing.measured import LoadFigures, Measurement, image_name, settings_digest

# AWS's own, interface endpoints included. The embedded AWS has another one.
_ADDRESSES: Final = (".amazonaws.com", ".amazonaws.com.cn")
_FLEET: Final = re.compile(r"([1-9]\d*) x (\S+)")
_MOST_FAILED_PERCENT: Final = 1.0
_TIMES: Final = tuple(f"{each}_milliseconds" for each in ("average", "deviation", "p99"))


def served(endpoint: Endpoint) -> Mapping[str, Any] | None:
    """Returns image, artifact, settings and AWS's address; None if they cannot be told."""
    try:
        return _served(endpoint)
    except (BotoCoreError, ClientError):
        return None  # the run is a result without them, and cannot be kept


def _served(endpoint: Endpoint) -> Mapping[str, Any] | None:
    sagemaker = endpoint.access.client("sagemaker")
    found = describe_endpoint(sagemaker, endpoint.name)
    config = described_config(sagemaker, found["EndpointConfigName"]) if found else None
    if config is None:
        return None
    name = config["EndpointConfigName"]
    answering, _, component = served_by(sagemaker, name, endpoint.component or "")
    model = model_of(sagemaker, config["ProductionVariants"][0], component)
    if model is None or answering.image is None or answering.artifact is None:
        return None
    return {
        "image": image_name(answering.image),
        # Without the place of an isolated one.
        "artifact": answering.artifact.partition(" ")[0],
        "settings": settings_digest(containers_of(model)[0].get("Environment") or {}),
        "address": endpoint.access.client("sagemaker-runtime").meta.endpoint_url,
    }


def why_not_kept(document: Document) -> str | None:
    """Returns why a run cannot be kept, as a sentence's end; None if it can."""
    answering = document.get("served")
    fleets = {fleet for cell in document["cells"] for fleet in cell["instances"]}
    if document["is_local"]:
        return "the embedded AWS runs on this machine, and says nothing about AWS"
    if document["stopped"]:
        return f"the run ended early: {document['stopped']}"
    if answering is None:
        return "the run does not say which image and artifact answered"
    if not (urlsplit(answering["address"]).hostname or "").endswith(_ADDRESSES):
        return f"{answering['address']} is no address of AWS"
    if len(fleets) != 1 or _FLEET.fullmatch(*fleets) is None:
        seen = "; ".join(sorted(fleets)) or "none"
        return f"one number of instances of one type has to answer, and there were: {seen}"
    if not list(_loads(document, 1)):
        return "no load has a result with at most one failure in a hundred requests"
    return None


def measurement_of(document: Document, container: str) -> Measurement:
    """Returns the figures of a run that matter before the next deployment; raises `UserError`."""
    reason = why_not_kept(document)
    if reason is not None:
        remedy = "Measure a deployed endpoint of an account, to the end."
        raise UserError.of(Code.NOT_KEPT, f"the run is not kept: {reason}", remedy)
    [fleet] = {fleet for cell in document["cells"] for fleet in cell["instances"]}
    number, _, instance_type = fleet.partition(" x ")
    count, answering = int(number), document["served"]
    return Measurement(
        measured_on=document["began_at"][:10],
        environment=document["environment"],
        instance_type=instance_type,
        instance_count=count,
        container=container,
        image=answering["image"],
        artifact=answering["artifact"],
        settings=answering["settings"],
        design=document["design"],
        trials=document["trials"],
        loads=tuple(_loads(document, count)),
    )


def _loads(document: Document, count: int) -> Iterator[LoadFigures]:
    """Yields each good load, as one of so many instances has it."""
    for cell in document["cells"]:
        figures, levels = cell["figures"], cell["levels"]
        failed = figures.get("failed_percent", {}).get("value", 100.0)
        if "requests_per_second" not in figures or failed > _MOST_FAILED_PERCENT:
            continue
        values = {name: each["value"] for name, each in figures.items()}
        rate, tokens = figures["requests_per_second"], values.get("tokens_per_second")
        batch, output = levels.get("batch", 1), levels.get("output_tokens")
        if tokens is not None:
            output = round(tokens / rate["value"] / batch, 1)
        seconds = values["average_milliseconds"] / 1000
        yield LoadFigures(
            concurrency=_rounded(rate["value"] * seconds / count),
            batch=batch,
            input_tokens=levels.get("input_tokens"),
            output_tokens=output or None,
            requests_per_second=_rounded(rate["value"] / count),
            least_requests_per_second=rate["low"] and _rounded(rate["low"] / count),
            most_requests_per_second=rate["high"] and _rounded(rate["high"] / count),
            **{name: values[name] for name in _TIMES},
        )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
