"""Writes slipway/facts/instances.json: `python -m tools.refresh_facts.instances`.

An ml. type has the hardware of the EC2 type with the same name. EC2's own description
(DescribeInstanceTypes, of which moto holds a recording) therefore fills the table. The two
dictionaries below add further facts, each row with its source. A cell that no source gives is
"unknown".
"""

import datetime
import gzip
import json
from collections.abc import Mapping
from typing import Any

from slipway.facts.tables import UNKNOWN
from tools.refresh_facts.tables import (
    FACTS,
    SourceError,
    hosting_instance_types,
    package_file,
    package_version,
    render,
    run,
)

Row = dict[str, Any]

# NVIDIA, "CUDA GPU Compute Capability" and its legacy page, by EC2's name of the product. They list
# the A10 and not the A10G, which has the same chip; TensorRT's documents give 8.6 for it.
COMPUTE_CAPABILITIES = {
    "A100": "sm80",
    "A10G": "sm86",
    "B200": "sm100",
    "B300": "sm103",
    "GB200": "sm100",
    "H100": "sm90",
    "H200": "sm90",
    "K80": "sm37",
    "L4": "sm89",
    "L40S": "sm89",
    # NVIDIA's names: RTX PRO 4500 and RTX PRO 6000 Blackwell Server Edition.
    "RTX PRO 4500": "sm120",
    "RTX PRO Server 6000": "sm120",
    "T4": "sm75",
    "V100": "sm70",
}


def _gpus(product: str, count: int, memory_gib: float | str) -> Row:
    capability = COMPUTE_CAPABILITIES.get(product, UNKNOWN)
    return {
        "kind": "gpu",
        "product": f"NVIDIA {product}",
        "count": count,
        "memory_gib": memory_gib,
        "compute_capability": capability,
    }


def _row(
    vcpus: int, memory_gib: float, architecture: str, accelerator: Row, local_nvme_gb: int
) -> Row:
    return {
        "vcpus": vcpus,
        "memory_gib": memory_gib,
        "architecture": architecture,
        "accelerator": accelerator,
        "local_nvme_gb": local_nvme_gb,
    }


# Types that hosting accepts and moto's recording lacks.
ROWS: Mapping[str, Row] = {
    # EC2 has stopped describing these three families. Their rows are from moto's earlier
    # recordings, which are the same in moto 4.2.14, 5.0.28 and 5.1.0.
    "ml.dl1.24xlarge": _row(
        96, 768, "x86_64",
        {"kind": "other", "product": "Habana Gaudi HL-205", "count": 8, "memory_gib": 32}, 4000,
    ),
    "ml.p2.xlarge": _row(4, 61, "x86_64", _gpus("K80", 1, 12), 0),
    "ml.p2.8xlarge": _row(32, 488, "x86_64", _gpus("K80", 8, 12), 0),
    "ml.p2.16xlarge": _row(64, 732, "x86_64", _gpus("K80", 16, 12), 0),
    "ml.p3.2xlarge": _row(8, 61, "x86_64", _gpus("V100", 1, 16), 0),
    "ml.p3.8xlarge": _row(32, 244, "x86_64", _gpus("V100", 4, 16), 0),
    "ml.p3.16xlarge": _row(64, 488, "x86_64", _gpus("V100", 8, 16), 0),
    # vCPUs, memory and GPUs: AWS's own table in sagemaker-hyperpod 3.12.0. Disk: AWS announced
    # 405 TB for an UltraServer of 72 GPUs, which is 18 of these. The memory of a GPU is published
    # in rounded GB only (185 or 186), so it stays unknown.
    "ml.p6e-gb200.36xlarge": _row(144, 960, "arm64", _gpus("GB200", 4, UNKNOWN), 22_500),
}  # fmt: skip

# Cells in which EC2's recording differs from another source, with the value that holds.
CORRECTIONS: Mapping[str, Mapping[str, Row]] = {
    # EC2 says 512 GiB a device, 8 TiB in all. AWS Neuron, "Trainium2 Architecture": 96 GiB a chip,
    # 16 chips with 1.5 TiB in trn2.48xlarge.
    "ml.trn2.48xlarge": {"accelerator": {"memory_gib": 96}},
    # Left as in EC2: g5, except g5.48xlarge. sagemaker-core 2.27.0 (instance_gpu_info.json) says
    # 24,576 MiB per GPU and EC2 22,888; for g5.48xlarge both say 22,888. The smaller number counts,
    # because a model must fit. All other counts and sizes of the two agree. So do vCPUs, memory and
    # GPUs of the 98 types that sagemaker-hyperpod 3.12.0 and EC2's recording share.
}


def _gib(mib: int) -> float:
    gib = round(mib / 1024, 2)
    return int(gib) if gib == int(gib) else gib


def _only(items: list[Row], name: str, what: str) -> Row:
    if len(items) != 1 or items[0]["Count"] < 1:
        raise SourceError(f"{name} has {what} of several kinds or a part of one: model that first")
    return items[0]


def _accelerator(name: str, description: Row) -> Row | None:
    if "GpuInfo" in description:
        gpu = _only(description["GpuInfo"]["Gpus"], name, "GPUs")
        product, count = gpu["Name"], gpu["Count"]
        memory_gib = _gib(gpu["MemoryInfo"]["SizeInMiB"])
        if gpu["Manufacturer"] == "NVIDIA":
            return _gpus(product, count, memory_gib)
        product = f"{gpu['Manufacturer']} {product}"
        return {"kind": "other", "product": product, "count": count, "memory_gib": memory_gib}
    if "NeuronInfo" in description:
        device = _only(description["NeuronInfo"]["NeuronDevices"], name, "Neuron devices")
        return {
            "kind": "neuron",
            "product": f"AWS {device['Name']}",
            "count": device["Count"],
            "memory_gib": _gib(device["MemoryInfo"]["SizeInMiB"]),
            "neuron_generation": f"NeuronCore-v{device['CoreInfo']['Version']}",
            "neuron_cores_per_device": device["CoreInfo"]["Count"],
        }
    for other in ("FpgaInfo", "InferenceAcceleratorInfo", "MediaAcceleratorInfo"):
        if other in description:
            raise SourceError(f"{name} has {other}: model that accelerator first")
    return None


def _local_nvme_gb(name: str, description: Row) -> int:
    storage = description.get("InstanceStorageInfo")
    if storage is None:
        return 0
    if storage["NvmeSupport"] != "required":
        raise SourceError(f"{name} has a local disk that is no NVMe: model that first")
    return int(storage["TotalSizeInGB"])


def row_of(name: str, description: Row | None) -> Row:
    """Returns a type's row.

    Args:
        name: SageMaker's name.
        description: EC2's description of the type with the same name; None if there is none.

    Raises:
        SourceError: the description has a value that the table has no cell for.
    """
    if description is None:
        cells = ("vcpus", "memory_gib", "architecture", "accelerator", "local_nvme_gb")
        return ROWS.get(name) or dict.fromkeys(cells, UNKNOWN)
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
    for cell, correction in CORRECTIONS.get(name, {}).items():
        row[cell] |= correction
    return row


def make(as_of: datetime.date) -> str:
    """Returns the table's text.

    Raises:
        SourceError: a source is missing or has changed its form.
    """
    recording = package_file("moto", "moto/ec2/resources/instance_types.json.gz")
    descriptions = json.loads(gzip.decompress(recording.read_bytes()))
    sources = [
        f"botocore {package_version('botocore')}, SageMaker's ProductionVariantInstanceType: the "
        "names",
        f"moto {package_version('moto')}, a recording of EC2's DescribeInstanceTypes: vCPUs, "
        "memory, architecture, accelerators, local disk of the EC2 type of that name",
        "moto 5.1.0, an earlier recording: p2, p3 and dl1, which EC2 no longer describes",
        "NVIDIA, CUDA GPU Compute Capability: the compute capability of each product",
        "sagemaker-hyperpod 3.12.0 and AWS's announcement of 2025-08: p6e-gb200",
        "AWS Neuron, Trainium2 Architecture: the memory of a Trainium2 device",
    ]
    rows = {name: row_of(name, descriptions.get(name[3:])) for name in hosting_instance_types()}
    return render(
        {"as_of": as_of.isoformat(), "sources": sources, "instances": rows},
        levels=2,
    )


if __name__ == "__main__":
    raise SystemExit(run(FACTS / "instances.json", make))
