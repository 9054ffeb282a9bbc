"""AWS's own tables, which a test process reads once instead of once for each account and client.

Most test modules of the embedded AWS have an account of their own, and sessions of boto3. A session
parses the models of its services, up to ten megabytes each, and makes a method for each operation.
moto's IAM makes fifteen hundred managed policies for an account.
"""

import copy
import functools
from typing import Any

from botocore import BOTOCORE_ROOT
from botocore.client import ClientCreator
from botocore.loaders import JSONFileLoader
from botocore.model import ServiceModel
from moto.core.config import default_user_config
from moto.iam.models import IAMBackend


def share_tables() -> None:
    """Makes botocore and moto keep what they read, to the end of this process."""
    JSONFileLoader.load_file = _shared_models(JSONFileLoader.load_file)  # type: ignore[method-assign]
    ClientCreator._load_service_model = _shared_service_model(ClientCreator._load_service_model)
    ClientCreator._create_methods = _shared_methods(ClientCreator._create_methods)
    IAMBackend._init_aws_policies = _shared_policies(IAMBackend._init_aws_policies)


def _shared_models(load_file: Any) -> Any:
    # botocore's clients of one session share these already: they do not change them.
    load_once = functools.cache(load_file)
    loader = JSONFileLoader()

    def load(self: JSONFileLoader, path: str) -> Any:
        is_botocores = path.startswith(BOTOCORE_ROOT)
        return load_once(loader, path) if is_botocores else load_file(self, path)

    return load


def _shared_service_model(load_model: Any) -> Any:
    loaded: dict[tuple[str, str | None], ServiceModel] = {}

    def load(creator: ClientCreator, service: str, api_version: str | None = None) -> ServiceModel:
        key = (service, api_version)
        return loaded.get(key) or loaded.setdefault(key, load_model(creator, service, api_version))

    return load


def _shared_methods(create_methods: Any) -> Any:
    created: dict[ServiceModel, dict[str, Any]] = {}

    def create(creator: ClientCreator, model: ServiceModel) -> dict[str, Any]:
        # boto3 adds methods of its own to what it is given.
        return dict(created.get(model) or created.setdefault(model, create_methods(creator, model)))

    return create


def _shared_policies(make: Any) -> Any:
    made: dict[tuple[str, str], list[Any]] = {}

    def policies(backend: IAMBackend) -> list[Any]:
        if not default_user_config["iam"]["load_aws_managed_policies"]:
            return []
        key = (backend.account_id, backend.region_name)
        originals = made.get(key) or made.setdefault(key, make(backend))
        # An account counts what a policy is attached to, and can add versions.
        return [_copied(policy) for policy in originals]

    return policies


def _copied(policy: Any) -> Any:
    copied = copy.copy(policy)
    copied.versions, copied.tags = list(policy.versions), dict(policy.tags)
    return copied
