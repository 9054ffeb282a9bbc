"""A rollout while autoscaling holds another number of instances than the template tells."""

from pathlib import Path

import pytest

from tests.support.rollouts import HURRIED, described
from tests.support.slipway_stack import slipway_stack
from tests.support.waiting import eventually


@pytest.mark.size("all")
def test_a_deploy_keeps_the_size_that_autoscaling_gave(tmp_path: Path) -> None:
    with slipway_stack(tmp_path, model="rollout-linear", time_scale=HURRIED) as stack:
        assert stack.create("ok") == "CREATE_COMPLETE"
        sagemaker = stack.stacks.client("sagemaker")
        sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=stack.name,
            DesiredWeightsAndCapacities=[{"VariantName": "AllTraffic", "DesiredInstanceCount": 3}],
        )
        eventually(lambda: described(stack)["EndpointStatus"] == "InService")
        assert stack.update("slow") == "UPDATE_COMPLETE"
        (variant,) = described(stack)["ProductionVariants"]
        # The template says 4.
        assert (variant["CurrentInstanceCount"], variant["DesiredInstanceCount"]) == (3, 3)
