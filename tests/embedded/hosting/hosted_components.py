"""Endpoints that host inference components, for tests."""

import contextlib
from collections.abc import Iterator
from typing import Any

from tests.embedded.hosting.conftest import Account, await_gone
from tests.support.waiting import LASTING_SECONDS, eventually

SCALED = {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 4}
# Of one ml.g5.xlarge, two such copies fill the memory and one fills the GPU.
SMALL = {"MinMemoryRequiredInMb": 8192}
ON_GPU = {"MinMemoryRequiredInMb": 1024, "NumberOfAcceleratorDevicesRequired": 1}


class Hosted:
    def __init__(self, account: Account) -> None:
        self.account = account
        self.sagemaker = account.sagemaker

    def variant(self, name: str = "AllTraffic", **more: Any) -> dict[str, Any]:
        return {
            "VariantName": name,
            "InstanceType": "ml.g5.xlarge",
            "InitialInstanceCount": 1,
            "ManagedInstanceScaling": SCALED,
            **more,
        }

    def config(self, *variants: dict[str, Any], **more: Any) -> str:
        role = {"ExecutionRoleArn": self.account.role}
        return self.account.config(*(variants or (self.variant(),)), **{**role, **more})

    def endpoint(self, **more: Any) -> str:
        role = {"ExecutionRoleArn": self.account.role}
        return self.account.serve(self.variant(**more), **role)

    def specification(
        self, mode: str = "ok", mark: str = "", size: dict[str, Any] = SMALL
    ) -> dict[str, Any]:
        model = self.account.model(mode, mark)
        return {"ModelName": model, "ComputeResourceRequirements": size}

    def begin(
        self, endpoint: str, specification: dict[str, Any], copies: int = 1, **more: Any
    ) -> str:
        name = self.account.name()
        self.sagemaker.create_inference_component(
            InferenceComponentName=name,
            EndpointName=endpoint,
            VariantName="AllTraffic",
            Specification=specification,
            RuntimeConfig={"CopyCount": copies},
            **more,
        )
        return name

    def component(self, endpoint: str, mark: str = "", copies: int = 1, **more: Any) -> str:
        name = self.begin(endpoint, self.specification(mark=mark, **more), copies)
        described = self.settled(name)
        assert described["InferenceComponentStatus"] == "InService", described
        return name

    def begin_adapter(self, endpoint: str, base: str, mark: str, **more: Any) -> str:
        name = self.account.name()
        self.sagemaker.create_inference_component(
            InferenceComponentName=name,
            EndpointName=endpoint,
            Specification=self.adapted(base, mark),
            **more,
        )
        return name

    def adapted(self, base: str, mark: str) -> dict[str, Any]:
        key = f"adapters/{self.account.name()}.tar.gz"
        self.account.put_archive(key, {"mark": mark.encode()} if mark else {"other": b"x"})
        url = {"ArtifactUrl": f"s3://artifacts/{key}"}
        return {"BaseInferenceComponentName": base, "Container": url}

    def adapter(self, endpoint: str, base: str, mark: str) -> str:
        name = self.begin_adapter(endpoint, base, mark)
        described = self.settled(name)
        assert described["InferenceComponentStatus"] == "InService", described
        return name

    def described(self, name: str) -> dict[str, Any]:
        return self.sagemaker.describe_inference_component(InferenceComponentName=name)

    def status(self, name: str) -> str:
        return self.described(name)["InferenceComponentStatus"]

    def settled(self, name: str) -> dict[str, Any]:
        settled = ("InService", "Failed")
        eventually(lambda: self.status(name) in settled, pause_seconds=LASTING_SECONDS)
        return self.described(name)

    def update(self, name: str, specification: dict[str, Any], **more: Any) -> None:
        self.sagemaker.update_inference_component(
            InferenceComponentName=name, Specification=specification, **more
        )

    def stream(self, endpoint: str, name: str, body: str) -> Any:
        answer = self.account.runtime.invoke_endpoint_with_response_stream(
            EndpointName=endpoint, InferenceComponentName=name, Body=body.encode()
        )
        return answer["Body"]

    @contextlib.contextmanager
    def busy_copy(self, endpoint: str, name: str) -> Iterator[None]:
        """A stream that lasts longer than it takes to ask the other copies."""
        events = self.stream(endpoint, name, " ".join(["stream", *"x" * 200, "end"]))
        next(iter(events))
        yield
        events.close()

    def scale(self, name: str, copies: int) -> dict[str, Any]:
        self.sagemaker.update_inference_component_runtime_config(
            InferenceComponentName=name, DesiredRuntimeConfig={"CopyCount": copies}
        )
        return self.settled(name)

    def copies(self, name: str) -> tuple[int, int]:
        """The copies that are wanted, and those that run."""
        runtime = self.described(name)["RuntimeConfig"]
        return runtime["DesiredCopyCount"], runtime["CurrentCopyCount"]

    def instances(self, endpoint: str) -> int:
        described = self.sagemaker.describe_endpoint(EndpointName=endpoint)
        (variant,) = described["ProductionVariants"]
        return int(variant["CurrentInstanceCount"])

    def invoke(self, endpoint: str, name: str, body: str = "x", **more: Any) -> str:
        return self.account.invoke(endpoint, body, InferenceComponentName=name, **more)

    def delete(self, name: str) -> None:
        self.sagemaker.delete_inference_component(InferenceComponentName=name)
        await_gone(self.sagemaker.describe_inference_component, InferenceComponentName=name)

    def sum_of(self, name: str, metric: str) -> float | None:
        return self.account.metric(metric, InferenceComponentName=name).get("Sum")
