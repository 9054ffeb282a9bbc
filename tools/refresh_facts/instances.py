"""Writes slipway/facts/instances.json: `python -m tools.refresh_facts.instances`.

An ml. type has the hardware of the EC2 type with the same name. EC2's own description
(DescribeInstanceTypes, of which moto holds a recording) therefore fills the table.
instance_tables.yaml adds further facts, each row with its source. A cell that no source gives is
"unknown".
"""

import gzip
import json
from collections.abc import Mapping
from typing import Any, Final

from slipway.facts.tables import UNKNOWN
from tools.refresh_facts.tables import (
    FACTS,
    SourceError,
    by_hand,
    hosting_instance_types,
    package_file,
    package_version,
    run,
)

Row = dict[str, Any]

_TABLES: Final = by_hand("instance_tables.yaml")


def _gib(mib: int) -> float:
    gib = round(mib / 1024, 2)
    return int(gib) if gib == int(gib) else gib


def _accelerator(name: str, description: Row) -> Row | None:
    gpus = description.get("GpuInfo", {}).get("Gpus")
    found = gpus or description.get("NeuronInfo", {}).get("NeuronDevices")
    if found is None:
        for other in ("FpgaInfo", "InferenceAcceleratorInfo", "MediaAcceleratorInfo"):
            if other in description:
                raise SourceError(f"{name} has {other}: model that accelerator first")
        return None
    if len(found) != 1 or found[0]["Count"] < 1:
        what = f"{'GPUs' if gpus else 'Neuron devices'} of several kinds or a part of one"
        raise SourceError(f"{name} has {what}: model that first")
    [device] = found
    maker = device["Manufacturer"] if gpus else "AWS"
    facts = {
        "product": f"{maker} {device['Name']}",
        "count": device["Count"],
        "memory_gib": _gib(device["MemoryInfo"]["SizeInMiB"]),
    }
    if not gpus:
        core = device["CoreInfo"]
        facts["neuron_generation"] = f"NeuronCore-v{core['Version']}"
        return {"kind": "neuron", **facts, "neuron_cores_per_device": core["Count"]}
    if maker != "NVIDIA":
        return {"kind": "other", **facts}
    capability = _TABLES["compute_capabilities"].get(device["Name"], UNKNOWN)
    return {"kind": "gpu", **facts, "compute_capability": capability}


def _local_nvme_gb(name: str, description: Row) -> int:
    storage = description.get("InstanceStorageInfo")
    if storage is None:
        return 0
    if storage["NvmeSupport"] != "required":
        raise SourceError(f"{name} has a local disk that is no NVMe: model that first")
    return int(storage["TotalSizeInGB"])


def row_of(name: str, description: Row | None) -> Row:
    """Returns a type's row, from EC2's description of the type with the same name."""
    if description is None:
        cells = ("vcpus", "memory_gib", "architecture", "accelerator", "local_nvme_gb")
        return _TABLES["rows"].get(name) or dict.fromkeys(cells, UNKNOWN)
    architectures = set(description["ProcessorInfo"]["SupportedArchitectures"]) - {"i386"}
    if len(architectures) != 1:
        raise SourceError(f"{name} has the architectures {sorted(architectures)}: expected one")
    row: Row = {
        "vcpus": description["VCpuInfo"]["DefaultVCpus"],
        "memory_gib": _gib(description["MemoryInfo"]["SizeInMiB"]),
        "architecture": architectures.pop(),
        "accelerator": _accelerator(name, description),
        "local_nvme_gb": _local_nvme_gb(name, description),
    }
    for cell, correction in _TABLES["corrections"].get(name, {}).items():
        row[cell] |= correction
    return row


def make() -> Mapping[str, Any]:
    recording = package_file("moto", "moto/ec2/resources/instance_types.json.gz")
    descriptions = json.loads(gzip.decompress(recording.read_bytes()))
    sources = [
        f"botocore {package_version('botocore')}, SageMaker's ProductionVariantInstanceType: the "
        "names",
        f"moto {package_version('moto')}, a recording of EC2's DescribeInstanceTypes: vCPUs, "
        "memory, architecture, accelerators, local disk of the EC2 type of that name",
        *_TABLES["sources"],
    ]
    rows = {name: row_of(name, descriptions.get(name[3:])) for name in hosting_instance_types()}
    return {"sources": sources, "instances": rows}


if __name__ == "__main__":
    raise SystemExit(run(FACTS / "instances.json", make, levels=2))
