"""Resources left of a destroyed model, which would still be billed or clutter the account."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from botocore.exceptions import ClientError

from slipway.access import Access, paged
from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.deployed.calls import endpoint_alarms, scaling_items
from slipway.operations.deployment import Deployment, find_deployment, find_obstacle, told
from slipway.operations.logs import LOG_GROUPS
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
    found = [*_made(name, environment, access)]
    if config is not None:
        found += _without_role(config, environment, access)
    return sorted(found, key=lambda item: (item.kind, item.name))


def _made(name: str, environment: Environment, access: Access) -> Iterator[Leftover]:
    endpoint, sagemaker = environment.stack_name(name), access.client("sagemaker")
    stack = find_deployment(access.client("cloudformation"), endpoint)
    # A stack under review has a change set and no resource.
    if stack is not None and stack.status != "REVIEW_IN_PROGRESS":
        yield Leftover("stack", endpoint, _state(stack))
    for kind, key, operation in (
        ("endpoint", "Endpoint", "list_endpoints"),
        # SageMaker keeps a component whose endpoint was deleted by hand.
        ("inference component", "InferenceComponent", "list_inference_components"),
    ):
        for item in paged(sagemaker, operation, f"{key}s", NameContains=endpoint):
            if item[f"{key}Name"] == endpoint:
                yield Leftover(kind, endpoint)
    tags = {_MODEL: name, **environment.tags}
    for kind, key, operation in (
        ("endpoint config", "EndpointConfig", "list_endpoint_configs"),
        ("model", "Model", "list_models"),
    ):
        for item in paged(sagemaker, operation, f"{key}s"):
            if _has(sagemaker.list_tags(ResourceArn=item[f"{key}Arn"])["Tags"], tags):
                yield Leftover(kind, item[f"{key}Name"])
    for item in endpoint_alarms(access.client("cloudwatch"), endpoint):
        yield Leftover("alarm", item["AlarmName"])
    scaling = access.client("application-autoscaling")
    for item in scaling_items(scaling, "describe_scalable_targets"):
        resource = item["ResourceId"]
        is_copies = resource == f"inference-component/{endpoint}"
        if is_copies or resource.startswith(f"endpoint/{endpoint}/"):
            yield Leftover("scalable target", resource)
    for group in (f"{prefix}{endpoint}" for prefix in LOG_GROUPS):
        logs, operation = access.client("logs"), "describe_log_groups"
        for item in paged(logs, operation, "logGroups", logGroupNamePrefix=group):
            if item["logGroupName"] == group:
                yield Leftover("log group", group)


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


def _has(listed: Iterable[dict[str, str]], tags: dict[str, str]) -> bool:
    found = {tag["Key"]: tag["Value"] for tag in listed}
    # A project that has a name is another one than this where this has none.
    return {**_NO_PROJECT, **tags}.items() <= {**_NO_PROJECT, **found}.items()
