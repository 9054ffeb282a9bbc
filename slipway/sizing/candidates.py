"""The ways to serve a config's model on an instance type, as planning sees them."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.serving.lmi import LmiServing
from slipway.errors import Problem
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.planning.deployment import Deployment
from slipway.planning.families import deployment_of
from slipway.planning.memory import estimate
from slipway.planning.quantization import stored_weights
from slipway.planning.resolve import known_problems
from slipway.sizing.facts import gpu_of, unmeasured
from slipway.sizing.latency import Server
from slipway.sizing.network import Network, UnknownShapeError
from slipway.sizing.ranking import LARGEST_BATCH, Candidate, Goal

# Fields whose problems depend on the instance type, or on how a copy is spread over it.
_OF_THE_TYPE = (("endpoint", "instances"), ("serving",))


def network_of(deployment: Deployment) -> Network:
    """Returns the network as its weights are served; raises `UnknownShapeError`."""
    model, serving = deployment.config.model, deployment.config.serving
    if not isinstance(serving, LmiServing):
        raise UnknownShapeError(f"no measurement is of the container `{serving.container}`")
    if deployment.is_encoder or "task" in serving.options:
        raise UnknownShapeError("no measurement is of models that write no text")
    if any(name.startswith("speculative") for name in serving.options):
        raise UnknownShapeError("no measurement is of speculative decoding with this draft")
    stored = stored_weights(deployment, serving.dtype).size_bytes
    return Network.of(model, stored, deployment.quantization or model.quantization)


def ways_of(
    on: Callable[[str], ModelConfig],
    environment: Environment,
    types: Iterable[InstanceFacts],
    goal: Goal,
) -> Iterator[tuple[str, list[Candidate] | str]]:
    """Yields each type with its candidates, or why it has none."""
    for instance in types:
        yield instance.name, _candidates(on(instance.name), environment, instance, goal)


def engine_of(serving: LmiServing, deployment: Deployment) -> str:
    """Returns the engine's name as measurements have it, or the framework's."""
    # Only vLLM allocates its share when it starts.
    return "vllm" if deployment.memory_share < 1 else serving.rolling_batch or serving.framework


def on_type(config: ModelConfig, name: str) -> ModelConfig:
    """Returns a config with one variant on an instance type."""
    changes: dict[str, object] = {"instances": (name,), "variants": (), "model_overrides": ()}
    changes |= {"shadow": None, "volume_size_gb": None}
    return config.model_copy(update={"endpoint": config.endpoint.model_copy(update=changes)})


def own_candidate(
    config: ModelConfig, environment: Environment, instance_type: str, goal: Goal
) -> Candidate | str:
    """Returns the way that a config itself serves its model on a type; or why there is none."""
    there, instance = on_type(config, instance_type), instance_types()[instance_type]
    try:
        deployment = deployment_of(there, environment)
        network_of(deployment)
    except UnknownShapeError as error:
        return str(error)
    found = _candidates(there, environment, instance, goal)
    if isinstance(found, str):
        return found
    memory = estimate(deployment, instance)
    degrees = {memory and memory.accelerators_per_copy}
    if getattr(there.serving, "pipeline_parallel_degree", 1) > 1:
        degrees = set()
    own = (each for each in found if each.server.degree in degrees)
    return next(own, "no measurement is of a copy spread as the config says")


def _candidates(
    config: ModelConfig, environment: Environment, instance: InstanceFacts, goal: Goal
) -> list[Candidate] | str:
    """Returns the candidates of a type, one a tensor parallel degree; or why there are none."""
    accelerator, serving = instance.accelerator, config.serving
    gpu = gpu_of(instance.name)
    if accelerator is None:
        return "it has no accelerator"
    if gpu is None or not isinstance(serving, LmiServing):
        return f"no measurement is on {instance.accelerator_title}"
    found: list[Candidate] = []
    reasons = ["nothing says what memory it takes"]
    most = serving.max_rolling_batch_size or LARGEST_BATCH
    for degree in range(1, accelerator.count + 1):
        if accelerator.count % degree:
            continue
        deployment = _deployment(config, serving, environment, degree, goal)
        server = Server(gpu, degree, engine_of(serving, deployment))
        wrong = [each.message for each in _problems(known_problems(deployment))]
        wrong += filter(None, [unmeasured(server)])
        # How many requests fit follows from one request.
        memory = estimate(deployment.with_serving(max_rolling_batch_size=1), instance)
        if wrong or memory is None:
            reasons += wrong
        else:
            found.append(Candidate(instance.name, server, network_of(deployment), memory, most))
    return found or reasons[-1]


def _deployment(
    config: ModelConfig,
    serving: LmiServing,
    environment: Environment,
    degree: int,
    goal: Goal,
) -> Deployment:
    prompt, answer = goal.input_tokens, goal.output_tokens
    options = dict(serving.options)
    if "max_model_len" in options:
        options["max_model_len"] = prompt + answer
    return deployment_of(config, environment).with_serving(
        tensor_parallel_degree=degree,
        pipeline_parallel_degree=1,
        max_input_tokens=prompt,
        max_new_tokens=answer,
        options=options,
    )


def _problems(problems: Sequence[Problem]) -> Iterator[Problem]:
    for problem in problems:
        if any(problem.field[: len(field)] == field for field in _OF_THE_TYPE):
            yield problem
