"""The Neuron SDKs of AWS's images, and the drivers that they need of the host.

The rows are in images.json, beside the images and the host images.
"""

import functools
from dataclasses import dataclass

from slipway.facts.images import InferenceAmi, image_table, inference_amis
from slipway.facts.tables import known


@dataclass(frozen=True, slots=True)
class NeuronDriverNeed:
    """What a Neuron SDK needs of the host's driver.

    `runtime_library` is the version of the Neuron runtime in images of that SDK, which does not
    initialise on drivers older than `oldest_driver`; None where no source says.
    """

    runtime_library: str
    oldest_driver: str | None
    reason: str


@functools.cache
def neuron_driver_need(sdk: str) -> NeuronDriverNeed | None:
    """Returns what a Neuron SDK needs of the host's driver; None where AWS names no need."""
    found = None
    for row in image_table()["neuron_drivers"]:
        if _order(sdk) >= _order(row["sdk"]):
            found = NeuronDriverNeed(
                row["runtime_library"], known(row["oldest_driver"]), row["reason"]
            )
    return found


@functools.cache
def newest_neuron_version(framework: str) -> str:
    """Returns the newest version whose runtime is not known to need a newer host than there is."""
    sdks: dict[str, str | None] = {
        name: row["neuron_sdk"] for name, row in image_table()["images"][framework].items()
    }
    return [name for name, sdk in sdks.items() if sdk and neuron_driver_need(sdk) is None][-1]


def _order(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def neuron_inference_ami() -> InferenceAmi:
    """Returns the host image of Inferentia 2 and Trainium; there is one."""
    return inference_amis()[image_table()["default_inference_amis"]["neuronx"]["inference_ami"]]
