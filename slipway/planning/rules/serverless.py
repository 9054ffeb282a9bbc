"""Rules about serverless endpoints: what AWS refuses there, and what Slipway cannot deploy there.

Sources, read 2026-11-29:

- https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints.html ("Feature exclusions")
- https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-exclusions.html
- ProductionVariant, ContainerDefinition and ProductionVariantServerlessConfig in botocore 1.44.5
"""

from collections.abc import Callable, Iterator
from functools import partial

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, Rule, problem
from slipway.planning.placements import SERVERLESS
from slipway.planning.rules.exclusions import Exclusion
from slipway.planning.vpc import vpc_plan

_MODE = "`mode: serverless`"


def _of_mode(rule: Rule) -> Callable[[Deployment], Iterator[Problem]]:
    """Returns a rule that finds nothing in another mode."""
    return lambda of: rule(of) if of.config.endpoint.mode == SERVERLESS else iter(())


@_of_mode
def container_runs_serverless(deployment: Deployment) -> Iterator[Problem]:
    """Refuses a container that needs an accelerator."""
    if not deployment.runs_serverless:
        yield problem(
            Code.SERVERLESS_CONTAINER,
            f"the container `{deployment.container}` needs a GPU or NeuronCores, and a serverless "
            "endpoint has neither",
            "Use `container: tensorrt`, which serves GPT-2 and encoders on a processor, or "
            "`container: custom`. Or choose instances.",
            ("serving", "container"),
        )


@_of_mode
def features_are_not_excluded(deployment: Deployment) -> Iterator[Problem]:
    """AWS lists what a serverless endpoint cannot have."""
    config, environment = deployment.config, deployment.environment
    endpoint, mode = config.endpoint, ("endpoint", "mode")
    excluded = partial(Exclusion, Code.SERVERLESS_EXCLUDES, SERVERLESS)
    if endpoint.network_isolation:
        name = "network_isolation"
        field = ("endpoint", name) if name in endpoint.model_fields_set else mode
        remedy = "Set `network_isolation: false`, which lets the container open connections"
        yield excluded(name, "AWS isolates no container there").problem(field, remedy)
    if endpoint.vpc is None and vpc_plan(config, environment) is not None:
        why = f"environment `{environment.name}` has its containers in a VPC"
        yield excluded("network", why).problem(mode, "Deploy to an environment without `network`")


@_of_mode
def sections_are_deployed(deployment: Deployment) -> Iterator[Problem]:
    """Refuses what AWS may take and Slipway does not deploy."""
    config = deployment.config
    found = {}
    if config.autoscaling is not None:
        found["autoscaling"] = (
            "AWS follows the requests itself, and could scale `provisioned_concurrency` alone"
        )
    if config.rollout.is_guarded:
        found["rollout"] = "AWS refuses `rolling`, and nobody has tried the other strategies"
    for name, why in found.items():
        message = f"Slipway does not deploy `{name}` with {_MODE}: {why}"
        remedy = f"Remove `{name}`."
        yield problem(Code.SERVERLESS_SECTION, message, remedy, (name,))


def provisioned_is_within_maximum(deployment: Deployment) -> Iterator[Problem]:
    """botocore: "Should be less than or equal to MaxConcurrency"."""
    sized = deployment.config.endpoint.serverless
    if sized is not None and (sized.provisioned_concurrency or 0) > sized.max_concurrency:
        yield problem(
            Code.SERVERLESS_CONCURRENCY,
            f"{sized.provisioned_concurrency} containers kept started are more than the "
            f"{sized.max_concurrency} requests at a time",
            "Lower `provisioned_concurrency`, or raise `max_concurrency`.",
            ("endpoint", "serverless", "provisioned_concurrency"),
        )


@_of_mode
def files_can_be_packed(deployment: Deployment) -> Iterator[Problem]:
    """Slipway packs the one archive that a serverless endpoint takes, of files of this machine."""
    artifacts = deployment.config.artifacts
    told = {
        ("serving", "model_data_object"): deployment.model_data_object,
        ("artifacts", "accept_eula"): artifacts.accept_eula,
    }
    for field in (field for field, value in told.items() if value):
        message = f"`{field[1]}` is of plain model data, and {_MODE} takes one archive of all files"
        remedy = f"Remove `{field[1]}`."
        yield problem(Code.SERVERLESS_ARTIFACT, message, remedy, field)
    if deployment.deploys_release and artifacts.weights is not None and artifacts.release is None:
        yield problem(
            Code.SERVERLESS_ARTIFACT,
            f"{_MODE} takes one archive, which Slipway packs of a directory alone, and not of "
            "`weights`",
            "Put the finished model into a directory, and name it in `artifacts.release` with "
            "`target: cpu`.",
            ("artifacts", "weights"),
        )
