"""Resources left of a destroyed model, which would still be billed or clutter the account."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from slipway.access import Access, paged
from slipway.config.environments import Environment
from slipway.config.names import KEPT_LOGS
from slipway.config.schema import ModelConfig
from slipway.deployed.calls import endpoint_alarms
from slipway.operations.deployment import Deployment, find_deployment, find_obstacle, told
from slipway.planning.artifact_place import own_place
from slipway.planning.vpc import vpc_plan

_MODEL = "slipway:model"
_NO_PROJECT = {"slipway:project": ""}
# models/NAME/artifacts/DIGEST/manifest.json; a file of an artifact may be called so as well.
_MANIFEST_DEPTH = 4


@dataclass(frozen=True)
class Leftover:
    """One resource that is still there; a note says what it needs."""

    kind: str
    name: str
    note: str = ""


def find_leftovers(
    name: str, environment: Environment, access: Access, config: ModelConfig | None = None
) -> list[Leftover]:
    """Looks for everything that a model's stack makes; with its config, in its network and key too.

    Models and endpoint configs have generated names and are told by their tags; the artifact
    bucket and the lock are meant to stay.
    """
    endpoint = environment.stack_name(name)
    tags = {_MODEL: name, **environment.tags}
    sagemaker = access.client("sagemaker")
    stack = find_deployment(access.client("cloudformation"), endpoint)
    if stack is not None and stack.status == "REVIEW_IN_PROGRESS":
        stack = None  # it has a change set and no resource
    found = [
        *([Leftover("stack", endpoint, _state(stack))] if stack else []),
        *(
            Leftover(kind, item[f"{key}Name"])
            for kind, key, operation in (
                ("endpoint", "Endpoint", "list_endpoints"),
                # SageMaker keeps a component whose endpoint was deleted by hand.
                ("inference component", "InferenceComponent", "list_inference_components"),
            )
            for item in paged(sagemaker, operation, f"{key}s", NameContains=endpoint)
            if item[f"{key}Name"] == endpoint
        ),
        *(
            Leftover(kind, item[f"{key}Name"])
            for kind, key, operation in (
                ("endpoint config", "EndpointConfig", "list_endpoint_configs"),
                ("model", "Model", "list_models"),
            )
            for item in paged(sagemaker, operation, f"{key}s")
            if _is_ours(sagemaker, item[f"{key}Arn"], tags)
        ),
        *(
            Leftover("alarm", item["AlarmName"])
            for item in endpoint_alarms(access.client("cloudwatch"), endpoint)
        ),
        *(
            Leftover("scalable target", item["ResourceId"])
            for item in paged(
                access.client("application-autoscaling"),
                "describe_scalable_targets",
                "ScalableTargets",
                ServiceNamespace="sagemaker",
            )
            if item["ResourceId"].startswith(f"endpoint/{endpoint}/")
            or item["ResourceId"] == f"inference-component/{endpoint}"
        ),
        *(
            Leftover("log group", item["logGroupName"])
            for prefix in (
                "/aws/sagemaker/Endpoints/",
                "/aws/sagemaker/InferenceComponents/",
                KEPT_LOGS,
            )
            for item in paged(
                access.client("logs"),
                "describe_log_groups",
                "logGroups",
                logGroupNamePrefix=f"{prefix}{endpoint}",
            )
            if item["logGroupName"] == f"{prefix}{endpoint}"
        ),
        *(_without_role(config, environment, access) if config is not None else ()),
    ]
    return sorted(found, key=lambda item: (item.kind, item.name))


def find_stacks(
    environment: Environment, access: Access, names: Collection[str]
) -> Iterator[Leftover]:
    """Yields the stacks of models that have no file any more.

    `names` are the models that have one.
    """
    for stack in paged(access.client("cloudformation"), "describe_stacks", "Stacks"):
        name, tags = stack["StackName"], stack.get("Tags", [])
        model = next((tag["Value"] for tag in tags if tag["Key"] == _MODEL), None)
        if model is not None and model not in names and _has(tags, environment.tags):
            way = f"cdk destroy {model} -c models={model} -c env={environment.name}"
            if name != environment.stack_name(model):
                way = f"aws cloudformation delete-stack --stack-name {name}"
            note = f"{stack['StackStatus']}, without model_configs/{model}.yaml: run `{way}`"
            yield Leftover("stack", name, note)


def find_kept(name: str, environment: Environment, access: Access) -> list[Leftover]:
    """Returns what is meant to stay of an isolated model: its files, and the keys they need."""
    place, s3 = own_place(name, environment), access.client("s3")
    keys: set[str] = set()
    try:
        for item in paged(
            s3, "list_objects_v2", "Contents", Bucket=place.bucket, Prefix=place.artifacts_prefix
        ):
            # One for each artifact: its files have the same key.
            if item["Key"].endswith("/manifest.json") and item["Key"].count("/") == _MANIFEST_DEPTH:
                head = s3.head_object(Bucket=place.bucket, Key=item["Key"])
                keys.add(head.get("SSEKMSKeyId", ""))
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise
    if not keys:
        return []
    files = Leftover("artifacts", f"s3://{place.bucket}/{place.root}")
    return [files, *(Leftover("key", key) for key in sorted(keys - {""}))]


def _without_role(
    config: ModelConfig, environment: Environment, access: Access
) -> Iterator[Leftover]:
    """Yields what SageMaker cannot give back any more, because the role that made it is gone."""
    vpc, key = vpc_plan(config, environment), config.endpoint.volume_key_arn
    if vpc is None and key is None:
        return
    roles = list(paged(access.client("iam"), "list_roles", "Roles"))
    ids, arns = ({role[member] for role in roles} for member in ("RoleId", "Arn"))
    if vpc is not None:
        filters = [{"Name": "subnet-id", "Values": list(vpc.subnet_ids)}]
        ec2, operation = access.client("ec2"), "describe_network_interfaces"
        for item in paged(ec2, operation, "NetworkInterfaces", Filters=filters):
            role_id, _, session = item.get("RequesterId", "").partition(":")
            is_own = session == "SageMaker" and item["OwnerId"] == environment.account
            if is_own and role_id not in ids:
                found = item["NetworkInterfaceId"]
                way = f"aws ec2 delete-network-interface --network-interface-id {found}"
                yield Leftover("network interface", found, f"its role is gone: run `{way}`")
    if key is not None:
        for item in paged(access.client("kms"), "list_grants", "Grants", KeyId=key):
            grantee = item.get("GranteePrincipal", "")
            # IAM shows a principal that is gone as its id, and KMS may show its ARN.
            is_role = grantee.startswith("AROA") or f":{environment.account}:role/" in grantee
            if is_role and grantee not in arns | ids:
                way = f"aws kms revoke-grant --key-id {key} --grant-id {item['GrantId']}"
                yield Leftover("key grant", item["GrantId"], f"its role is gone: run `{way}`")


def _state(stack: Deployment) -> str:
    obstacle = find_obstacle(stack.stack, stack, has_endpoint=None, gone=None)
    return f"{stack.status}: {told(obstacle)}" if obstacle else stack.status


def _is_ours(sagemaker: Any, arn: str, tags: dict[str, str]) -> bool:
    return _has(sagemaker.list_tags(ResourceArn=arn)["Tags"], tags)


def _has(listed: Iterable[dict[str, str]], tags: dict[str, str]) -> bool:
    found = {tag["Key"]: tag["Value"] for tag in listed}
    # A project that has a name is another one than this where this has none.
    return {**_NO_PROJECT, **tags}.items() <= {**_NO_PROJECT, **found}.items()
