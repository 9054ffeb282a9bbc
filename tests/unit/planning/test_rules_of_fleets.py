"""Variants, shadows, pools, autoscaling, modes: refusals word for word, and configs that pass."""

from slipway.planning.families.tensorrt import rules as tensorrt
from slipway.planning.partial import rules_of
from slipway.planning.rules import capacity, exclusions, serving
from tests.support.projects import PRODUCTION
from tests.unit.planning.rule_findings import (
    all_of,
    findings,
    messages,
    on,
    only,
    refused_fields,
    scaling,
    variants,
)

POOL = {"instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"]}


class TestVariants:
    def test_two_weighted_ones_are_fine(self):
        endpoint = variants(("stable", 0.9), ("candidate", 0.1))
        for rule in rules_of(capacity):
            assert findings(rule, endpoint=endpoint) == []

    def test_names_are_told_apart(self):
        rule = capacity.variants_are_told_apart
        assert refused_fields(rule, endpoint=variants(("a", 1), ("a", 1))) == [
            "endpoint.variants[1].name"
        ]
        rule = capacity.variant_names_differ_in_more_than_case
        assert messages(rule, endpoint=variants(("a", 1), ("A", 1))) == [
            ("endpoint.variants[1].name", "'A' differs from another variant in case only")
        ]

    def test_variants_are_told_apart(self):
        assert only(findings(capacity.variants_are_told_apart, endpoint=variants(("a", 1)))) == (
            "endpoint.variants",
            "one variant alone needs no section `variants`",
            "Remove `variants`, or add a second one.",
        )
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
        assert only(messages(tensorrt.needs_nvidia_gpu, endpoint=endpoint)) == (
            "endpoint.variants[1].instances[0]",
            "ml.c5.xlarge has no accelerator; the container `tensorrt` needs an NVIDIA GPU",
        )
        assert only(
            messages(capacity.scaling_bounds, endpoint=endpoint, autoscaling=scaling(2, 4))
        ) == (
            "endpoint.variants[1].instance_count",
            "9 instances at creation are more than the autoscaling maximum of 4",
        )


class TestPools:
    def test_a_timeout_is_for_what_comes_next(self):
        rule = capacity.provision_timeout_needs_pool
        assert only(findings(rule, endpoint={"instance_provision_timeout_seconds": 600})) == (
            "endpoint.instance_provision_timeout_seconds",
            "there is no second instance type to try",
            "Name several in `instances`, or remove `instance_provision_timeout_seconds`.",
        )
        pool = POOL | {"instance_provision_timeout_seconds": 600}
        assert findings(rule, endpoint=pool) == []

    def test_a_first_creation_ends_before_cloudformation_gives_up(self):
        rule = capacity.creation_ends_in_time
        longest = {
            "instance_provision_timeout_seconds": 3600,
            "model_data_download_timeout_seconds": 3600,
            "container_startup_health_check_timeout_seconds": 2401,
        }
        assert only(findings(rule, endpoint=POOL | longest)) == (
            "endpoint.instance_provision_timeout_seconds",
            "a first creation may take 161 minutes by its timeouts for instances, download "
            "and start-up; CloudFormation ends it after 160",
            "Take 1 s from the three timeouts together.",
        )
        longest["container_startup_health_check_timeout_seconds"] = 2400
        assert findings(rule, endpoint=POOL | longest) == []
        # Copies start after the endpoint was created.
        copies = {"max_copies": 2, "target_concurrent_requests_per_copy": 5}
        asleep = {"mode": "scale_to_zero", "instance_count": 1, "scale_to_zero": copies}
        assert findings(rule, endpoint=POOL | longest | asleep) == []

    def test_a_type_is_tried_once(self):
        twice = {"instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge", "ml.g4dn.xlarge"]}
        assert refused_fields(capacity.instance_types_differ, endpoint=twice) == [
            "endpoint.instances[2]"
        ]
        assert findings(capacity.instance_types_differ, endpoint=POOL) == []

    def test_one_engine_fits_one_gpu(self):
        mixed = {"instances": ["ml.g4dn.xlarge", "ml.g5.xlarge"]}
        assert only(messages(serving.engine_fits_gpu, PRODUCTION, endpoint=mixed)) == (
            "artifacts.release.target",
            "the engine was built for sm75, but ml.g5.xlarge has NVIDIA A10G (sm86)",
        )
        assert findings(serving.engine_fits_gpu, PRODUCTION, endpoint=POOL) == []


class TestScaling:
    def test_there_is_one_target(self):
        rule = capacity.scaling_has_one_target
        both = scaling(1, 4) | {"target_concurrent_requests_per_instance": 8}
        assert only(findings(rule, autoscaling=both)) == (
            "autoscaling.target_concurrent_requests_per_instance",
            "there are 2 targets: target_invocations_per_instance_per_minute, "
            "target_concurrent_requests_per_instance",
            "Keep one of them.",
        )
        none = {"min_instance_count": 1, "max_instance_count": 4}
        assert only(findings(rule, autoscaling=none)) == (
            "autoscaling",
            "there is no target to scale by",
            "Add `target_invocations_per_instance_per_minute`, or "
            "`target_concurrent_requests_per_instance`.",
        )
        assert findings(rule, autoscaling=scaling(1, 4)) == []

    def test_the_target_is_one_that_the_mode_publishes(self):
        rule = capacity.scaling_target_fits_mode
        backlog = {
            "min_instance_count": 1, "max_instance_count": 4, "target_backlog_per_instance": 5,
        }  # fmt: skip
        assert only(messages(rule, autoscaling=backlog)) == (
            "autoscaling.target_backlog_per_instance",
            "only an asynchronous endpoint has a backlog",
        )
        assert only(messages(rule, endpoint={"mode": "async"}, autoscaling=scaling(0, 4))) == (
            "autoscaling.target_invocations_per_instance_per_minute",
            "an asynchronous endpoint has no such metric",
        )
        assert findings(rule, endpoint={"mode": "async"}, autoscaling=backlog) == []
        assert messages(rule, autoscaling=scaling(0, 4)) == [
            ("autoscaling.min_instance_count", "a realtime endpoint keeps one instance at least")
        ]

    def test_burstable_types_do_not_scale(self):
        rule = capacity.burstable_types_do_not_scale
        assert only(findings(rule, endpoint=on("ml.t2.medium"), autoscaling=scaling(1, 2))) == (
            "endpoint.instances[0]",
            "ml.t2.medium is burstable, and SageMaker does not scale such types",
            "Choose another type, or remove `autoscaling`.",
        )
        assert findings(rule, endpoint=on("ml.t2.medium")) == []
        assert findings(rule, endpoint=on("ml.trn1.2xlarge"), autoscaling=scaling(1, 2)) == []


def test_each_has_its_section():
    rule = capacity.mode_has_its_section
    assert only(findings(rule, endpoint={"mode": "async"})) == (
        "endpoint.mode",
        "`mode: async` needs the section `async_inference`",
        "Add `endpoint.async_inference`.",
    )
    answers = {"async_inference": {"input": "s3://requests/", "output": "s3://answers/ocr/"}}
    assert only(findings(rule, endpoint=answers)) == (
        "endpoint.async_inference",
        "nothing reads `async_inference` with `mode: realtime`",
        "Remove it, or set `mode: async`.",
    )
    assert findings(rule, endpoint=answers | {"mode": "async"}) == []


class TestShadow:
    def test_it_follows_one_production_variant(self):
        rule = capacity.shadow_follows_one_variant
        shadow = {"shadow": {"sampling_percent": 50}}
        assert findings(rule, endpoint=shadow) == []
        assert refused_fields(rule, endpoint=shadow | variants(("a", 1), ("b", 1))) == [
            "endpoint.shadow"
        ]

    def test_its_copies_are_asked_in_real_time(self):
        rule = all_of(exclusions.RULES)
        places = {"input": "s3://requests/", "output": "s3://answers/"}
        queued = {"mode": "async", "async_inference": places}
        assert findings(rule, endpoint=queued) == []
        assert only(messages(rule, endpoint=queued | {"shadow": {"sampling_percent": 50}})) == (
            "endpoint.shadow",
            "`shadow` and `mode: async` exclude each other: SageMaker copies requests in real "
            "time alone",
        )

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
