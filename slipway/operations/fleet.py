"""`slipway list`: every model of an environment at a glance, and stacks that no file explains.

Few calls tell of all endpoints. The others are made side by side. What the account refuses is left
open, and named.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeVar

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from slipway.access import Access, paged
from slipway.config.environments import Environment
from slipway.deployed.calls import describe_endpoint, scaling_items
from slipway.deployed.described import Raw
from slipway.deployed.fields import running_instances
from slipway.deployed.served import Served, served_by
from slipway.deployed.traffic import (
    IDLE_DAYS,
    Traffic,
    Watched,
    account_time,
    find_traffic,
    last_requests,
    watched_metrics,
)
from slipway.errors import UserError
from slipway.planning.artifacts import has_source
from slipway.planning.bill import bill_of
from slipway.planning.cost import Fleet as PaidFleet
from slipway.planning.cost import estimate_cost
from slipway.planning.described_alarms import scales, watches
from slipway.planning.placements import SERVERLESS
from slipway.planning.plan import DeploymentPlan
from slipway.project import Project

_Answer = TypeVar("_Answer")
_Otherwise = TypeVar("_Otherwise")
_WORKERS: Final = 16
# An account with many endpoints throttles Describe calls; botocore waits and tries again.
_CLIENTS: Final = Config(
    max_pool_connections=_WORKERS, retries={"mode": "standard", "total_max_attempts": 10}
)
# It throttles nobody. One that has just stopped is told of at once.
_EMBEDDED_CLIENTS: Final = Config(
    max_pool_connections=_WORKERS, retries={"mode": "standard", "total_max_attempts": 2}
)
_MODEL_TAG: Final = "slipway:model"
IN_SERVICE, SLEEPS, CHANGES = "in service", "sleeps", "changes"
NOT_DEPLOYED, UNSEEN = "not deployed", "not seen"
DELETED, NOTHING_SERVES = "is being deleted", "nothing serves"


@dataclass(frozen=True)
class FleetRow:
    """One model in one environment. None is a value that is unknown, or that there is none of.

    The model of a stack without a file is the name in the stack's tag. The state is one of the
    words above, or that of SageMaker or CloudFormation; `reason` is of the trouble, where the state
    does not tell it. `traffic` is of the last hour. `alarms` are raised, and do more than scale.
    The cost is the bill's total if as many instances run all month, and without a file that of the
    instances; `usd_known_per_month` are the parts whose price is known, None without the
    instances'. `idle_days` without a request are counted up to `IDLE_DAYS`; None below one day.
    """

    model: str
    environment: str
    state: str
    is_trouble: bool = False
    reason: str = ""
    serves_files: bool | None = None
    instances: str | None = None
    at_maximum: bool = False
    traffic: Traffic | None = None
    alarms: tuple[str, ...] = ()
    usd_per_month: float | None = None
    usd_known_per_month: float | None = None
    idle_days: int | None = None
    has_file: bool = True


@dataclass(frozen=True)
class Fleet:
    """What is deployed in an environment; `unseen` has what AWS did not show, and its reason."""

    rows: tuple[FleetRow, ...]
    unseen: Mapping[str, str]


class _Account:
    """One account and region; an answer that it refuses is noted, and another takes its place."""

    def __init__(self, access: Access, clients: Config) -> None:
        # boto3 makes clients one after the other.
        services = ("application-autoscaling", "cloudformation", "cloudwatch", "sagemaker", "sts")
        self.scaling, self.cloudformation, self.cloudwatch, self.sagemaker, self.sts = (
            access.client(each, clients) for each in services
        )
        self.unseen: dict[str, str] = {}

    def seen(
        self, what: str, look: Callable[[], _Answer], otherwise: _Otherwise
    ) -> _Answer | _Otherwise:
        try:
            return look()
        except (BotoCoreError, ClientError) as error:
            self.unseen.setdefault(what, str(error))
            return otherwise

    def stacks(self) -> dict[str, Raw]:
        """Returns the account's stacks by their names, without those that never held anything."""
        found = paged(self.cloudformation, "describe_stacks", "Stacks")
        return {
            each["StackName"]: each for each in found if each["StackStatus"] != "REVIEW_IN_PROGRESS"
        }

    def raised(self) -> list[Raw]:
        alarms = paged(self.cloudwatch, "describe_alarms", "MetricAlarms", StateValue="ALARM")
        return [each for each in alarms if not scales(each)]

    def maxima(self) -> dict[str, int]:
        """Returns the most instances or copies of each scalable target, by its resource."""
        targets = scaling_items(self.scaling, "describe_scalable_targets")
        return {each["ResourceId"]: each["MaxCapacity"] for each in targets}

    def live(self, endpoint_name: str, stack_name: str) -> "_Live | None":
        """Follows an endpoint to what it serves; None without it, or without copies on it."""
        described = describe_endpoint(self.sagemaker, endpoint_name)
        if described is None:
            return None
        config = described["EndpointConfigName"]
        served, types, component = served_by(self.sagemaker, config, stack_name)
        if component is None and endpoint_name != stack_name:
            return None
        return _Live(described, served, types, component)


@dataclass(frozen=True)
class _Live:
    described: Raw
    served: Served
    types: Mapping[str, tuple[str, ...]]
    component: Raw | None

    @property
    def variants(self) -> Sequence[Raw]:
        found: Sequence[Raw] = self.described.get("ProductionVariants", [])
        return found

    @property
    def is_serverless(self) -> bool:
        return any("CurrentServerlessConfig" in each for each in self.variants)

    @property
    def watched(self) -> list[Watched]:
        variants = [each["VariantName"] for each in self.variants]
        component = self.component["InferenceComponentName"] if self.component else None
        is_async = "AsyncInferenceConfig" in self.described
        name = self.described["EndpointName"]
        return watched_metrics(name, variants, component, is_async=is_async)

    @property
    def counts(self) -> Mapping[str, int]:
        """Returns the instances of each variant, or the copies, by their scalable resource."""
        if self.component is not None:
            name = self.component["InferenceComponentName"]
            copies = self.component.get("RuntimeConfig", {}).get("CurrentCopyCount", 0)
            return {f"inference-component/{name}": copies}
        prefix = f"endpoint/{self.described['EndpointName']}/variant"
        return {
            f"{prefix}/{each['VariantName']}": each.get("CurrentInstanceCount", 0)
            for each in self.variants
        }


def find_fleet(project: Project, environment: Environment, access: Access) -> Fleet:
    """Looks at every model that an environment deploys, and at every stack of Slipway in it."""
    account = _Account(access, _EMBEDDED_CLIENTS if environment.is_local else _CLIENTS)
    plans = dict(_plans(project, environment))
    with ThreadPoolExecutor(_WORKERS) as pool:
        alarms = pool.submit(account.seen, "alarms", account.raised, list[Raw]())
        maxima = pool.submit(account.seen, "scaling", account.maxima, dict[str, int]())
        stacks = account.seen("stacks", account.stacks, None)
        names = sorted({*plans, *_deployed(stacks or {}, environment)})

        def live(name: str) -> _Live | str | None:
            stack, plan = environment.stack_name(name), plans.get(name)
            endpoint = plan.endpoint_name if plan is not None else stack
            return account.seen("endpoints", lambda: account.live(endpoint, stack), UNSEEN)

        lives = dict(zip(names, pool.map(live, names), strict=True))
        serving = [(name, each) for name, each in lives.items() if isinstance(each, _Live)]
        requests = account.seen(
            "requests",
            lambda: _requests(account, serving),
            dict[str, tuple[Traffic, int | None]](),
        )
    rows = []
    for name in names:
        there = lives[name]
        stack = (stacks or {}).get(environment.stack_name(name))
        is_absent = stacks is not None and stack is None
        if isinstance(there, str):
            row = FleetRow(name, environment.name, NOT_DEPLOYED if is_absent else there)
        else:
            row = _row(name, environment, plans.get(name), stack, there)
            if is_absent and isinstance(there, _Live):
                row = replace(row, is_trouble=True, reason="it has no stack")
        row = replace(row, has_file=name in project.files)
        if isinstance(there, _Live):
            traffic, idle_days = requests.get(name, (None, None))
            limits = [maxima.result().get(each) == count for each, count in there.counts.items()]
            stack_name = environment.stack_name(name)
            raised = [each for each in alarms.result() if watches(each, stack_name)]
            row = replace(
                row,
                at_maximum=any(limits),
                traffic=traffic,
                idle_days=idle_days,
                alarms=tuple(each["AlarmName"] for each in raised),
                is_trouble=row.is_trouble or bool(raised),
            )
        rows.append(row)
    return Fleet(tuple(rows), account.unseen)


def _deployed(stacks: Mapping[str, Raw], environment: Environment) -> Iterator[str]:
    """Yields the models whose stacks an environment has, by the tags of the stacks."""
    for name, stack in stacks.items():
        tags = {each["Key"]: each["Value"] for each in stack.get("Tags", [])}
        model = tags.get(_MODEL_TAG, "")
        if environment.tags.items() <= tags.items() and name == environment.stack_name(model):
            yield model


def _plans(
    project: Project, environment: Environment
) -> Iterator[tuple[str, DeploymentPlan | None]]:
    """Yields the models that an environment deploys; None for a model without a valid plan."""
    for name in project.files:
        try:
            if has_source(project.deployment(name, environment)):
                yield name, project.unjudged.plan(name, environment, allow_unpublished=True)
        except UserError:
            yield name, None


def _requests(
    account: _Account, serving: Sequence[tuple[str, _Live]]
) -> dict[str, tuple[Traffic, int | None]]:
    now = account_time(account.sts)
    watched = [live.watched for _, live in serving]
    found = {}
    for (name, live), traffic, last in zip(
        serving,
        find_traffic(account.cloudwatch, watched, now),
        last_requests(account.cloudwatch, watched, now),
        strict=True,
    ):
        idle = now - max(last or live.described["CreationTime"], now - timedelta(days=IDLE_DAYS))
        found[name] = (traffic, idle.days or None)
    return found


def _row(
    name: str,
    environment: Environment,
    plan: DeploymentPlan | None,
    stack: Raw | None,
    live: _Live | None,
) -> FleetRow:
    stack_status = stack["StackStatus"] if stack is not None else ""
    is_failed = stack_status.endswith("_FAILED") or "ROLLBACK" in stack_status
    state = stack_status if is_failed else ""
    if not is_failed and stack_status.endswith("_IN_PROGRESS"):
        state = DELETED if stack_status == "DELETE_IN_PROGRESS" else CHANGES
    if live is None:
        is_gone = stack is not None and not state
        state = state or (NOTHING_SERVES if is_gone else NOT_DEPLOYED)
        return FleetRow(name, environment.name, state, is_trouble=is_failed or is_gone)
    described = live.component or live.described
    status = described.get("InferenceComponentStatus") or live.described["EndpointStatus"]
    count = sum(each.get("CurrentInstanceCount", 0) for each in live.variants)
    running = {each["VariantName"]: running_instances(each) for each in live.variants}
    types = dict.fromkeys(
        each for name, pool in live.types.items() for each in running.get(name) or (_first(pool),)
    )
    is_asleep = live.component is not None and not any(live.counts.values())
    if not state and status == "InService":
        state = SLEEPS if is_asleep else IN_SERVICE
    gone = live.served.gone
    usd, usd_known = _cost(live, plan, environment.region)
    return FleetRow(
        name,
        environment.name,
        state or status,
        is_trouble=is_failed or status == "Failed" or gone is not None,
        reason=f"its {gone} was deleted" if gone else "",
        serves_files=None if plan is None or gone else _serves(live.served, plan),
        instances=(
            SERVERLESS if live.is_serverless else f"{count} x {', '.join(types) or 'unknown'}"
        ),
        usd_per_month=usd,
        usd_known_per_month=usd_known,
    )


def _first(types: Sequence[str]) -> str:
    return types[0] if types else "unknown"


def _serves(served: Served, plan: DeploymentPlan) -> bool:
    files = plan.served_by(plan.variants[0])
    return (served.image, served.artifact) == (files.image.uri, files.artifact.label)


def _cost(
    live: _Live, plan: DeploymentPlan | None, region: str
) -> tuple[float | None, float | None]:
    """Returns the bill's month with the instances that run, and the known part of it.

    Guests add no instances to their host's.
    """
    is_guest = live.component is not None and (
        live.component["InferenceComponentName"] != live.described["EndpointName"]
    )
    size = plan.config.endpoint.volume_size_gb if plan is not None else None
    running = []
    for each in () if is_guest else live.variants:
        types = live.types.get(each["VariantName"], ())
        count = each.get("CurrentInstanceCount", 0)
        if live.is_serverless:
            types, count = (SERVERLESS,), 1  # of an unknown price
        started = running_instances(each) or {_first(types): count}
        running += [PaidFleet((name,), n, n, n, size) for name, n in started.items()]
    cost = estimate_cost(running, region)
    if plan is None:
        return cost.instances.expected, cost.instances.expected
    bill = bill_of(replace(plan, cost=cost))
    return bill.total.expected, bill.known
