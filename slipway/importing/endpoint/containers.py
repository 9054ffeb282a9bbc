"""The models of an endpoint: which container serves, and in which network."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from slipway.deployed.answers import Answer
from slipway.deployed.described import Described, Raw, containers_of
from slipway.deployed.fields import PRIVATE_REGISTRY
from slipway.importing.draft import SLIPWAYS_ROLE
from slipway.importing.endpoint.components import scales_to_zero
from slipway.importing.endpoint.findings import Findings

_REASONS: Mapping[str, str] = {
    "AdditionalModelDataSources": "a config has one artifact.",
    "ContainerHostname": "a single container needs no name.",
    "ContainerMetricsConfig": "no field of the config says it.",
    "ExecutionRoleArn": SLIPWAYS_ROLE,
    "ModelDataSource": "no field of the config says it. Slipway publishes a prefix of plain files.",
}
# Names, times and states, and what SageMaker recommends.
_ABOUT = ("ModelName", "ModelArn", "CreationTime", "DeploymentRecommendation", "ResponseMetadata")
_DEFAULTS: Mapping[tuple[str, ...], str] = {
    ("Mode",): "SingleModel",
    ("ImageConfig", "RepositoryAccessMode"): "Platform",
}


@dataclass(frozen=True)
class Container:
    """The container of an endpoint.

    `data` is a prefix or an archive in S3, and `fields` are fields of the section `endpoint`.
    `private_registry` is the section of an image that is in no ECR.
    """

    image: str
    environment: Mapping[str, str]
    data: str | None
    fields: Mapping[str, Any]
    private_registry: Mapping[str, str] | None


def refuse_other_forms(described: Described, found: Findings) -> None:
    """Notes every form of an endpoint that no config can say."""
    if described.components and not scales_to_zero(described):
        found.refuse(
            f"{described.origin} hosts inference components: {', '.join(described.components)}",
            "Import each of them with `--call`: its image, its model data and its variables. "
            "Slipway makes an endpoint for each.",
        )
    for variant in _variants(described):
        name = f"the variant {variant['VariantName']} of {described.origin}"
        if "ServerlessConfig" in variant:
            found.refuse(
                f"{name} is serverless",
                "Import the model with `--call`, and set `endpoint.serverless` yourself.",
            )
        elif not variant.get("ModelName") and not described.components:
            found.refuse(
                f"{name} has no model, and no inference component is there",
                "Import the model with `--call` where you know its image and its data.",
            )
    for name, model in described.models.items():
        for message, remedy in _forms(model):
            found.refuse(f"the model {name} of {described.origin} {message}", remedy)
    first, *others = {_served(model): name for name, model in _of_variants(described)}.values() or [
        ""
    ]
    if others:
        found.refuse(
            f"the variants of {described.origin} serve several models: "
            f"{', '.join([first, *others])}",
            "An import reads one model. Import each with `--call`, under a name of its own. Then "
            "write the second one's `model`, `serving` and `artifacts` into its variant.",
        )


def container_of(described: Described, found: Findings) -> Container:
    """Returns the container of an endpoint: the first one, where it is refused for its form."""
    _, raw = next(_of_variants(described), ("", {}))
    model = Answer(raw, _ABOUT)
    model.take("Containers")
    container = Answer(next(iter(containers_of(raw)), {}))
    model.take("PrimaryContainer")
    fields = take_network(model)
    model.take("InferenceExecutionConfig")  # how requests pass several containers
    for path, default in _DEFAULTS.items():
        if (value := container.take(*path)) not in (default, None):
            container.put(value, *path)
    registry = None
    if container.take("ImageConfig", "RepositoryAccessMode") == "Vpc":
        registry = container.fields(PRIVATE_REGISTRY)
    data = container.take("ModelDataUrl")
    for name in ("CompressionType", "S3DataType", "ETag", "ManifestEtag"):
        container.take("ModelDataSource", "S3DataSource", name)
    # The licence that was accepted for the model data.
    container.take("ModelDataSource", "S3DataSource", "ModelAccessConfig")
    data = container.take("ModelDataSource", "S3DataSource", "S3Uri") or data
    image, environment = container.take("Image"), container.take("Environment") or {}
    found.leave_out_rest(model, **_REASONS)
    found.leave_out_rest(container, **_REASONS)
    return Container(str(image), environment, data, fields, registry)


def take_network(answer: Answer) -> dict[str, Any]:
    """Returns the fields of `endpoint` that say the network of the containers.

    They are taken out of a model, or of the endpoint configuration of a component.
    """
    fields: dict[str, Any] = {"network_isolation": bool(answer.take("EnableNetworkIsolation"))}
    if subnets := answer.take("VpcConfig", "Subnets"):
        groups = answer.take("VpcConfig", "SecurityGroupIds") or []
        fields["vpc"] = {"subnet_ids": list(subnets), "security_group_ids": list(groups)}
    return fields


def _variants(described: Described) -> Iterator[Raw]:
    yield from described.config["ProductionVariants"]


def _of_variants(described: Described) -> Iterator[tuple[str, Raw]]:
    for variant in _variants(described):
        specification = (described.component or {}).get("Specification") or {}
        name = str(variant.get("ModelName") or specification.get("ModelName"))
        if name in described.models:
            yield name, described.models[name]


def _served(model: Raw) -> str:
    """Returns a text that is the same for models that serve the same."""
    kept = ("EnableNetworkIsolation", "VpcConfig")
    return repr([containers_of(model), [model.get(name) for name in kept]])


def _forms(model: Raw) -> Iterator[tuple[str, str]]:
    containers = containers_of(model)
    if len(containers) > 1:
        images = ", ".join(
            str(each.get("Image", each.get("ModelPackageName"))) for each in containers
        )
        yield (
            f"is a pipeline of {len(containers)} containers: {images}",
            "A config has one container. Put the steps into one image, or import each container "
            "with `--call`.",
        )
    for container in containers:
        if package := container.get("ModelPackageName"):
            yield (
                f"is made of the model package {package}",
                "A subscription of AWS Marketplace cannot be deployed by its image. Of a package "
                "of your own, `aws sagemaker describe-model-package` shows image and model data: "
                "import them with `--call`.",
            )
        if container.get("Mode") == "MultiModel":
            yield (
                f"loads many models on request, from {container.get('ModelDataUrl')}",
                "A config has one model. Import each model with `--call`, under a name of its own.",
            )
        source = (container.get("ModelDataSource") or {}).get("S3DataSource") or {}
        if source.get("HubAccessConfig"):
            yield (
                "takes its data from a private hub of SageMaker JumpStart",
                "Publish the weights from another place: `--call` with `--weights`.",
            )
