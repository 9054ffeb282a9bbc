"""Variants, pools, autoscaling, modes: what is refused, word for word, and what not."""

from typing import Any

import pytest

from slipway.planning.families.tensorrt import rules as tensorrt
from slipway.planning.rules import (
    capacity,
    compiling,
    components,
    hardware,
    schedules,
    serving,
    shadows,
)
from tests.support.projects import PRODUCTION
from tests.unit.planning.rule_findings import findings, on, scaling

CUSTOM = {
    "container": "custom",
    "image_uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2",
}
POOL = {"instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"]}
HUB = {"source": "hub", "repository": "gpt2", "revision": "a" * 40}


def variants(*named: tuple[str, float], **more: Any) -> dict[str, Any]:
    return {"variants": [{"name": name, "weight": weight, **more} for name, weight in named]}


def messages(*arguments: Any, **sections: Any) -> list[tuple[str, str]]:
    return [(field, message) for field, message, _ in findings(*arguments, **sections)]


def custom(**more: Any) -> dict[str, Any]:
    return {"serving": None} | {"serving": CUSTOM | more}


class TestVariants:
    def test_two_weighted_ones_are_fine(self):
        endpoint = variants(("stable", 0.9), ("candidate", 0.1))
        for rule in capacity.RULES:
            assert findings(rule, endpoint=endpoint) == []

    def test_names_are_told_apart(self):
        rule = capacity.variants_are_told_apart
        assert findings(rule, endpoint=variants(("a", 1), ("a", 1))) == [
            (
                "endpoint.variants[1].name",
                "there are two variants 'a'",
                "Give each variant its own name.",
            )
        ]
        rule = capacity.variant_names_differ_in_more_than_case
        assert messages(rule, endpoint=variants(("a", 1), ("A", 1))) == [
            ("endpoint.variants[1].name", "'A' differs from another variant in case only")
        ]

    def test_one_alone_is_none(self):
        assert findings(capacity.variants_are_told_apart, endpoint=variants(("a", 1))) == [
            (
                "endpoint.variants",
                "one variant alone needs no section `variants`",
                "Remove `variants`, or add a second one.",
            )
        ]

    def test_somebody_gets_the_requests(self):
        weightless = variants(("a", 0), ("b", 0))
        assert messages(capacity.variants_are_told_apart, endpoint=weightless) == [
            ("endpoint.variants", "every variant has weight 0: no request would reach one")
        ]

    def test_their_own_types_and_counts_are_checked_where_they_stand(self):
        endpoint = {
            "variants": [
                {"name": "a", "weight": 1},
                {"name": "b", "weight": 1, "instances": ["ml.c5.xlarge"], "instance_count": 9},
            ]
        }
        assert messages(tensorrt.needs_nvidia_gpu, endpoint=endpoint) == [
            (
                "endpoint.variants[1].instances[0]",
                "ml.c5.xlarge has no accelerator; the container `tensorrt` needs an NVIDIA GPU",
            )
        ]
        assert messages(capacity.scaling_bounds, endpoint=endpoint, autoscaling=scaling(2, 4)) == [
            (
                "endpoint.variants[1].instance_count",
                "9 instances at creation lie outside the autoscaling range of 2 to 4",
            )
        ]


class TestPools:
    def test_a_timeout_is_for_what_comes_next(self):
        rule = capacity.provision_timeout_needs_pool
        assert findings(rule, endpoint={"instance_provision_timeout_seconds": 600}) == [
            (
                "endpoint.instance_provision_timeout_seconds",
                "there is no second instance type to try",
                "Name several in `instances`, or remove `instance_provision_timeout_seconds`.",
            )
        ]
        pool = POOL | {"instance_provision_timeout_seconds": 600}
        assert findings(rule, endpoint=pool) == []

    def test_a_type_is_tried_once(self):
        twice = {"instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge", "ml.g4dn.xlarge"]}
        assert findings(capacity.instance_types_differ, endpoint=twice) == [
            ("endpoint.instances[2]", "ml.g4dn.xlarge is named twice", "Remove it here.")
        ]
        assert findings(capacity.instance_types_differ, endpoint=POOL) == []

    def test_one_engine_fits_one_gpu(self):
        mixed = {"instances": ["ml.g4dn.xlarge", "ml.g5.xlarge"]}
        assert messages(compiling.engine_fits_gpu, PRODUCTION, endpoint=mixed) == [
            (
                "artifacts.release.target",
                "the engine was built for sm75, but ml.g5.xlarge has NVIDIA A10G (sm86)",
            )
        ]
        assert findings(compiling.engine_fits_gpu, PRODUCTION, endpoint=POOL) == []


class TestHosts:
    def test_our_images_are_for_x86(self):
        rule = hardware.image_runs_on_processor
        assert findings(rule, endpoint=on("ml.c7g.xlarge")) == [
            (
                "endpoint.instances[0]",
                "ml.c7g.xlarge has an arm64 processor; the image is for x86_64",
                "Choose an instance type whose processor is Intel's or AMD's.",
            )
        ]
        assert findings(rule, endpoint=on("ml.c7i.xlarge")) == []
        # An image of one's own may be for either.
        assert findings(rule, endpoint=on("ml.c7g.xlarge"), **custom()) == []

    @pytest.mark.parametrize(
        ("instance", "ami", "reason"),
        [
            ("ml.inf1.xlarge", "al2-ami-sagemaker-inference-neuron-2",
             "SageMaker takes no host image for inf1"),
            ("ml.inf2.xlarge", "al2-ami-sagemaker-inference-gpu-3-1", "it has AWS Inferentia2"),
            ("ml.g5.xlarge", "al2-ami-sagemaker-inference-neuron-2", "it has NVIDIA A10G"),
            ("ml.c5.xlarge", "al2-ami-sagemaker-inference-gpu-3-1", "the type has no accelerator"),
            ("ml.g5.xlarge", "al2-ami-sagemaker-inference-gpu-3-1", None),
            ("ml.inf2.xlarge", "al2-ami-sagemaker-inference-neuron-2", None),
        ],
    )  # fmt: skip
    def test_a_host_image_has_one_kind_of_driver(self, instance, ami, reason):
        found = messages(
            hardware.ami_fits_accelerator, endpoint=on(instance) | {"inference_ami_version": ami}
        )
        expected = f"{ami} does not fit {instance}: {reason}"
        assert found == ([("endpoint.inference_ami_version", expected)] if reason else [])

    def test_a_pool_has_one_host_image(self):
        rule = hardware.pool_has_one_host_image
        mixed = {"instances": ["ml.g4dn.xlarge", "ml.c5.xlarge"]}
        assert findings(rule, endpoint=mixed, **custom(cuda_version="12.4")) == [
            (
                "endpoint.instances[1]",
                "ml.c5.xlarge has no GPU, and ml.g4dn.xlarge of the same pool needs the host image "
                "al2-ami-sagemaker-inference-gpu-3-1",
                "Name only types with the same kind of accelerator, or give each kind a variant.",
            )
        ]
        # Without a host image there is nothing to agree on.
        assert findings(rule, endpoint=mixed, **custom(cuda_version="11.8")) == []
        assert findings(rule, endpoint=mixed, **custom()) == []
        apart = [
            {"name": "a", "weight": 1, "instances": ["ml.g4dn.xlarge"]},
            {"name": "b", "weight": 1, "instances": ["ml.c5.xlarge"]},
        ]
        assert findings(rule, endpoint={"variants": apart}, **custom(cuda_version="12.4")) == []

    def test_cuda_13_needs_the_newest_driver(self):
        rule = hardware.ami_fits_cuda
        older = {"inference_ami_version": "al2-ami-sagemaker-inference-gpu-3-1"}
        assert findings(rule, endpoint=older, **custom(cuda_version="13.0")) == [
            (
                "endpoint.inference_ami_version",
                "the image has CUDA 13.0, whose driver al2-ami-sagemaker-inference-gpu-3-1 does "
                "not have",
                "Use `al2023-ami-sagemaker-inference-gpu-4-1`, or leave it out: it is then chosen "
                "by the image's CUDA.",
            )
        ]
        assert findings(rule, endpoint=older, **custom(cuda_version="12.4")) == []
        assert findings(rule, **custom(cuda_version="13.0")) == []

    def test_an_alarm_on_gpus_needs_one(self):
        alarms = {"gpu_memory_utilization_percent": 90}
        rule = hardware.gpu_alarm_needs_gpu
        assert findings(rule, endpoint=on("ml.c5.xlarge"), alarms=alarms) == [
            (
                "alarms.gpu_memory_utilization_percent",
                "ml.c5.xlarge has no GPU, and so no metric of its memory",
                "Remove `gpu_memory_utilization_percent`.",
            )
        ]
        assert findings(rule, alarms=alarms) == []

    def test_an_alarm_on_gpus_needs_types_with_as_many(self):
        alarms = {"gpu_memory_utilization_percent": 90}
        rule = hardware.gpu_alarm_has_one_threshold
        pool = {"instances": ["ml.g5.12xlarge", "ml.g5.24xlarge", "ml.g5.xlarge"]}
        assert findings(rule, endpoint=pool, alarms=alarms) == [
            (
                "endpoint.instances[2]",
                "ml.g5.xlarge has 1 GPU and ml.g5.12xlarge has 4 GPUs; the metric "
                "`GPUMemoryUtilization` adds up over the GPUs of an instance, so no one threshold "
                "is right for both",
                "Use types with the same number of GPUs, or remove "
                "`alarms.gpu_memory_utilization_percent`.",
            )
        ]
        assert findings(rule, endpoint=pool) == []
        # Each variant has an alarm of its own.
        own = [
            {"name": "a", "weight": 1, "instances": ["ml.g5.12xlarge", "ml.g5.24xlarge"]},
            {"name": "b", "weight": 1, "instances": ["ml.g5.xlarge"]},
        ]
        assert findings(rule, endpoint={"variants": own}, alarms=alarms) == []


class TestScaling:
    def test_there_is_one_target(self):
        rule = capacity.scaling_has_one_target
        both = scaling(1, 4) | {"target_concurrent_requests_per_instance": 8}
        assert findings(rule, autoscaling=both) == [
            (
                "autoscaling.target_concurrent_requests_per_instance",
                "there are 2 targets: target_invocations_per_instance_per_minute, "
                "target_concurrent_requests_per_instance",
                "Keep one of them.",
            )
        ]
        none = {"min_instance_count": 1, "max_instance_count": 4}
        assert findings(rule, autoscaling=none) == [
            (
                "autoscaling",
                "there is no target to scale by",
                "Add `target_invocations_per_instance_per_minute`, or "
                "`target_concurrent_requests_per_instance`.",
            )
        ]
        assert findings(rule, autoscaling=scaling(1, 4)) == []

    def test_the_target_is_one_that_the_mode_publishes(self):
        rule = capacity.scaling_target_fits_mode
        backlog = {
            "min_instance_count": 1, "max_instance_count": 4, "target_backlog_per_instance": 5,
        }  # fmt: skip
        assert messages(rule, autoscaling=backlog) == [
            (
                "autoscaling.target_backlog_per_instance",
                "only an asynchronous endpoint has a backlog",
            )
        ]
        assert messages(rule, endpoint={"mode": "async"}, autoscaling=scaling(0, 4)) == [
            (
                "autoscaling.target_invocations_per_instance_per_minute",
                "an asynchronous endpoint has no such metric",
            )
        ]
        assert findings(rule, endpoint={"mode": "async"}, autoscaling=backlog) == []
        assert messages(rule, autoscaling=scaling(0, 4)) == [
            ("autoscaling.min_instance_count", "a realtime endpoint keeps one instance at least")
        ]

    def test_burstable_types_do_not_scale(self):
        rule = capacity.burstable_types_do_not_scale
        assert findings(rule, endpoint=on("ml.t2.medium"), autoscaling=scaling(1, 2)) == [
            (
                "endpoint.instances[0]",
                "ml.t2.medium is burstable, and SageMaker does not scale such types",
                "Choose another type, or remove `autoscaling`.",
            )
        ]
        assert findings(rule, endpoint=on("ml.t2.medium")) == []
        assert findings(rule, endpoint=on("ml.trn1.2xlarge"), autoscaling=scaling(1, 2)) == []


class TestModes:
    def test_each_has_its_section(self):
        rule = capacity.mode_has_its_section
        assert findings(rule, endpoint={"mode": "async"}) == [
            (
                "endpoint.mode",
                "`mode: async` needs the section `async_inference`",
                "Add `endpoint.async_inference`.",
            )
        ]
        answers = {"async_inference": {"input": "s3://requests/", "output": "s3://answers/ocr/"}}
        assert findings(rule, endpoint=answers) == [
            (
                "endpoint.async_inference",
                "nothing reads `async_inference` with `mode: realtime`",
                "Remove it, or set `mode: async`.",
            )
        ]
        assert findings(rule, endpoint=answers | {"mode": "async"}) == []


class TestShadow:
    def test_it_follows_one_production_variant(self):
        rule = shadows.shadow_follows_one_variant
        shadow = {"shadow": {"sampling_percent": 50}}
        assert findings(rule, endpoint=shadow) == []
        assert findings(rule, endpoint=shadow | variants(("a", 1), ("b", 1))) == [
            (
                "endpoint.shadow",
                "`shadow` and 2 variants exclude each other: SageMaker copies the requests of one "
                "production variant",
                "Remove `shadow`, or remove `variants`.",
            )
        ]

    def test_its_copies_are_asked_in_real_time(self):
        rule = shadows.shadow_is_asked_in_real_time
        places = {"input": "s3://requests/", "output": "s3://answers/"}
        queued = {"mode": "async", "async_inference": places}
        assert findings(rule, endpoint=queued) == []
        assert messages(rule, endpoint=queued | {"shadow": {"sampling_percent": 50}}) == [
            (
                "endpoint.shadow",
                "`shadow` and `mode: async` exclude each other: SageMaker copies requests in real "
                "time alone",
            )
        ]

    def test_its_instance_types_are_checked_as_all_others(self):
        shadow = {"sampling_percent": 50, "instances": ["ml.g4dn.xlarge", "ml.g4dn.xlarge"]}
        assert messages(capacity.instance_types_differ, endpoint={"shadow": shadow}) == [
            ("endpoint.shadow.instances[1]", "ml.g4dn.xlarge is named twice")
        ]
        pool = {"sampling_percent": 50, "instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"]}
        rule = capacity.provision_timeout_needs_pool
        waits = {"instance_provision_timeout_seconds": 600}
        assert findings(rule, endpoint={**waits, "shadow": pool}) == []
        without_gpu = {"sampling_percent": 50, "instances": ["ml.c5.xlarge"]}
        assert [
            field
            for field, _ in messages(tensorrt.needs_nvidia_gpu, endpoint={"shadow": without_gpu})
        ] == ["endpoint.shadow.instances[0]"]
        # It is not scaled, so that it may be burstable.
        burstable = {"sampling_percent": 50, "instances": ["ml.t2.medium"]}
        rule = capacity.burstable_types_do_not_scale
        assert findings(rule, endpoint={"shadow": burstable}, autoscaling=scaling(1, 2)) == []


class TestScaleToZero:
    def endpoint(self, **more: Any) -> dict[str, Any]:
        component = {
            "copy_memory_mib": 8192,
            "max_copies": 2,
            "target_concurrent_requests_per_copy": 5,
        }
        component |= more.pop("component", {})
        return {
            "mode": "scale_to_zero",
            "scale_to_zero": component,
            "instance_count": 1,
            **more,
        }

    def test_a_component_takes_all_requests(self):
        rule = components.component_is_alone
        assert findings(rule, endpoint=self.endpoint()) == []
        both = self.endpoint(**variants(("a", 1), ("b", 1)), shadow={"sampling_percent": 50})
        assert messages(rule, endpoint=both) == [
            (
                f"endpoint.{name}",
                f"`{name}` and `mode: scale_to_zero` exclude each other: copies of an inference "
                "component take the requests",
            )
            for name in ("variants", "shadow")
        ]
        assert findings(rule, endpoint=variants(("a", 1), ("b", 1))) == []

    def test_the_instances_follow_the_copies(self):
        rule = components.copies_are_scaled_alone
        assert findings(rule, endpoint=self.endpoint()) == []
        endpoint = self.endpoint(instance_count=2)
        assert findings(rule, endpoint=endpoint, autoscaling=scaling(0, 2)) == [
            (
                "autoscaling",
                "`autoscaling` and `mode: scale_to_zero` exclude each other: "
                "`endpoint.scale_to_zero` scales the copies, and the instances follow them",
                "Remove `autoscaling`, and set a target under `endpoint.scale_to_zero`.",
            ),
            (
                "endpoint.instance_count",
                "`instance_count` and `mode: scale_to_zero` exclude each other: the instances "
                "follow the copies",
                "Remove `instance_count`.",
            ),
        ]
        # The rules of instances say nothing about the same section.
        for other in (capacity.scaling_target_fits_mode, schedules.capacity_alarm_can_end):
            assert (
                findings(
                    other,
                    endpoint=endpoint,
                    autoscaling=scaling(0, 2),
                    alarms={"at_max_capacity": True},
                )
                == []
            )
        assert findings(rule, endpoint={"instance_count": 2}, autoscaling=scaling(1, 2)) == []

    def test_copies_have_one_target(self):
        rule = components.component_has_one_target
        assert findings(rule, endpoint=self.endpoint()) == []
        both = {"target_invocations_per_copy_per_minute": 60}
        assert findings(rule, endpoint=self.endpoint(component=both)) == [
            (
                "endpoint.scale_to_zero.target_invocations_per_copy_per_minute",
                "there are 2 targets: target_concurrent_requests_per_copy, "
                "target_invocations_per_copy_per_minute",
                "Keep one of them.",
            )
        ]
        none = {"target_concurrent_requests_per_copy": None}
        assert findings(rule, endpoint=self.endpoint(component=none)) == [
            (
                "endpoint.scale_to_zero",
                "there is no target to scale the copies by",
                "Add `target_concurrent_requests_per_copy`, or "
                "`target_invocations_per_copy_per_minute`.",
            )
        ]

    def test_copies_are_not_captured(self):
        rule = components.components_are_not_captured
        more = {"data_capture": {"destination": "s3://captured/"}}
        assert findings(rule, endpoint=self.endpoint(**more)) == [
            (
                "endpoint.data_capture",
                "`data_capture` and `mode: scale_to_zero` exclude each other: AWS documents no "
                "data capture of inference components, and its SDK sends none",
                "Remove `data_capture`, or set `mode: realtime`.",
            )
        ]
        assert findings(rule, endpoint=self.endpoint()) == []
        assert findings(rule, endpoint=more) == []

    def test_a_copy_reserves_the_same_on_every_type(self):
        rule = components.copies_are_alike
        alike = {"instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"]}
        assert findings(rule, endpoint=self.endpoint(**alike)) == []
        gpus = {"instances": ["ml.g4dn.xlarge", "ml.g4dn.12xlarge"]}
        assert findings(rule, endpoint=self.endpoint(**gpus)) == [
            (
                "endpoint.scale_to_zero",
                "without `accelerators_per_copy` a copy gets other numbers of accelerators on each "
                "type: 1 of ml.g4dn.xlarge, 4 of ml.g4dn.12xlarge",
                "Set `accelerators_per_copy` to a number that each type has, or name types that "
                "are alike.",
            )
        ]
        one = {"accelerators_per_copy": 1}
        assert findings(rule, endpoint=self.endpoint(component=one, **gpus)) == []
        processors = {"instances": ["ml.c5.xlarge", "ml.c5.2xlarge"]}
        assert messages(rule, endpoint=self.endpoint(**processors)) == [
            (
                "endpoint.scale_to_zero",
                "without `vcpus_per_copy` a copy gets other numbers of virtual processors on each "
                "type: 3 of ml.c5.xlarge, 6 of ml.c5.2xlarge",
            )
        ]
        assert findings(rule, endpoint=gpus) == []

    def test_a_copy_fits_the_instance(self):
        rule = components.component_fits_instance
        assert findings(rule, endpoint=self.endpoint()) == []
        # ml.g4dn.xlarge: 4 virtual processors, 16 GiB, one T4.
        large = {"copy_memory_mib": 16_385, "vcpus_per_copy": 4.5, "accelerators_per_copy": 2}
        assert findings(rule, endpoint=self.endpoint(component=large)) == [
            (f"endpoint.scale_to_zero.{field}", message, remedy)
            for field, message, remedy in [
                (
                    "copy_memory_mib",
                    "a copy needs 16385 MiB of memory; ml.g4dn.xlarge has 16384",
                    "Lower it, or choose a larger instance type.",
                ),
                (
                    "vcpus_per_copy",
                    "a copy needs 4.5 virtual processors; ml.g4dn.xlarge has 4",
                    "Lower it, or choose a larger instance type.",
                ),
                (
                    "accelerators_per_copy",
                    "a copy needs 2 accelerators; ml.g4dn.xlarge has 1",
                    "Lower it, or choose a larger instance type.",
                ),
            ]
        ]
        exact = {"copy_memory_mib": 16_384, "vcpus_per_copy": 4, "accelerators_per_copy": 1}
        assert findings(rule, endpoint=self.endpoint(component=exact)) == []


class TestArtifacts:
    def test_a_release_has_one_source(self):
        rule = serving.release_has_one_source
        assert findings(rule, artifacts={"weights": HUB}) == [
            (
                "artifacts.weights",
                "there are two sources of the release: `release` and `weights`",
                "Keep one of them.",
            )
        ]
        only = {"release": None, "weights": HUB}
        assert findings(rule, artifacts=only) == []
        assert findings(serving.artifact_exists, PRODUCTION, artifacts=only) == []

    def test_compiling_needs_weights(self):
        compiling = {"compile": {"instance": "ml.g4dn.xlarge"}}
        assert messages(serving.release_has_one_source, artifacts=compiling) == [
            ("artifacts.compile", "there are no weights to compile")
        ]
