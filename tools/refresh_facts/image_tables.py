"""Facts about AWS's container images that no library on PyPI has: dated tables with sources."""

# aws/deep-learning-containers at e0ecedea6a (2026-08-21): docs/src/data and, in its history,
# available_images.md, whose last version also gives the regions.
LISTED_AS_OF = "2026-08-21"
NEURON_REGIONS = (
    "ap-east-2 ap-northeast-1 ap-south-1 ap-southeast-1 ap-southeast-2 eu-central-1 eu-west-1 "
    "eu-west-3 sa-east-1 us-east-1 us-east-2 us-west-2"
)
# Versions that the list of 2026-08-21 still has; newer versions are alive too.
OLDEST_LISTED = {
    "djl-lmi": "0.32.0",
    "djl-tensorrtllm": "0.32.0",
    "huggingface-pytorch-inference-neuronx": "2.1.2-transformers4.43.2",
    "huggingface-vllm-inference-neuronx": "0.11.0-optimum0.4.5",
    "huggingface-pytorch-inference-gpu": "2.6.0-transformers5.5.3",
    "huggingface-pytorch-inference-cpu": "2.6.0-transformers5.5.3",
    # 26.03 is the first version without a path traversal in its SageMaker front end.
    "sagemaker-tritonserver": "26.03",
}
# framework: (why all of its versions are legacy, the framework to move to)
GONE = {
    "djl-fastertransformer": (
        "DJL Serving has no FasterTransformer since 0.25.0, and no image of it was made since",
        "djl-lmi",
    ),
    "djl-deepspeed": (
        "DJL Serving has no DeepSpeed since 0.28.0, and no image of it was made since",
        "djl-lmi",
    ),
    "djl-neuronx": (
        "DJL Serving removed its Neuron code in November 2025; 0.30.0 had the last Neuron image",
        "huggingface-vllm-inference-neuronx",
    ),
    "pytorch-inference-neuron": (
        "Inferentia 1 gets no new tool chain: Neuron SDK 2.20.2 was the last with one",
        "huggingface-pytorch-inference-neuronx",
    ),
    # aws-neuron/aws-neuron-sdk at 81ce03ae (2026-08-21), release-notes/components/containers.rst.
    # The next table has the images that its deploy/environments/dlc-images.rst still lists for
    # PyTorch models.
    "pytorch-inference-neuronx": (
        "AWS publishes none since Neuron SDK 2.32.0 (2026-08-17); in its place it names vLLM, for "
        "language models on Trainium 2 and 3 alone",
        "huggingface-pytorch-inference-neuronx",
    ),
    "huggingface-pytorch-inference-neuron": (
        "Inferentia 1 gets no new tool chain: Neuron SDK 2.20.2 was the last with one",
        "huggingface-pytorch-inference-neuronx",
    ),
    "huggingface-pytorch-tgi-inference": (
        f"AWS's list of images has no Text Generation Inference any more ({LISTED_AS_OF})",
        "djl-lmi",
    ),
}
SUPERSEDED = f"AWS's list of images has newer versions only ({LISTED_AS_OF})"
UNSAFE_FRONT_END = "its SageMaker front end has a path traversal, fixed in 26.03"

# Contents of DJL images that their tag does not state: the Dockerfile of djl-serving's branch
# VERSION-dlc (requirements files from 0.32.0); 0.38.0: djl-serving pull request 3075.
FULL_NAMES = {"tnx": "transformers-neuronx", "lmi_dist": "lmi-dist", "hf": "transformers"}
DJL_CONTENTS = """
djl-fastertransformer 0.21.0 python=3.9 torch=1.13.1 hf=4.25.1
djl-fastertransformer 0.22.1 python=3.9 torch=1.13.1 hf=4.27.3
djl-fastertransformer 0.23.0 python=3.9 torch=1.13.1 hf=4.30.1
djl-fastertransformer 0.24.0 python=3.9 torch=1.13.1 hf=4.34.0
djl-deepspeed 0.19.0 python=3.8 torch=1.12.1 hf=4.22.1
djl-deepspeed 0.20.0 python=3.8 torch=1.12.1 hf=4.23.1
djl-deepspeed 0.21.0 python=3.8 torch=1.13.1 hf=4.26.0
djl-deepspeed 0.22.1 python=3.9 torch=2.0.1 hf=4.29.2
djl-deepspeed 0.23.0 python=3.9 torch=2.0.1 hf=4.30.2 vllm=0.1.1 lmi_dist=0.9.4.pre
djl-deepspeed 0.24.0 python=3.9 torch=2.0.1 hf=4.34.0 vllm=0.2.0 lmi_dist=0.9.4
djl-deepspeed 0.25.0 python=3.9 torch=2.0.1 hf=4.34.0 vllm=0.2.1.post1 lmi_dist=0.9.4.post0
djl-deepspeed 0.26.0 python=3.10 torch=2.1.2 hf=4.36.2 vllm=0.2.7 lmi_dist=8.0.0
djl-deepspeed 0.27.0 python=3.10 torch=2.1.2 hf=4.39.0 vllm=0.3.3 lmi_dist=9.0.0
djl-neuronx 0.22.1 python=3.8 torch=1.13.1 hf=4.28.1 tnx=0.3.32
djl-neuronx 0.23.0 python=3.8 torch=1.13.1 hf=4.30.1 tnx=0.5.58
djl-neuronx 0.24.0 python=3.8 torch=1.13.1 hf=4.34.0 tnx=0.8.268
djl-neuronx 0.25.0 python=3.8 torch=1.13.1 hf=4.34.0 tnx=0.8.268
djl-neuronx 0.26.0 python=3.9 torch=1.13.1 hf=4.35.0 tnx=0.9.474
djl-neuronx 0.27.0 python=3.9 torch=2.1.2 hf=4.36.2 tnx=0.10.0.360
djl-neuronx 0.28.0 python=3.10 torch=2.1.2 hf=4.36.2 tnx=0.10.0.360 vllm=0.4.2
djl-neuronx 0.29.0 python=3.10 torch=2.1.2 hf=4.43.1 tnx=0.11.351 vllm=0.5.0
djl-neuronx 0.30.0 python=3.10 torch=2.1.2 hf=4.45.2 tnx=0.12.313 vllm=0.6.2
djl-tensorrtllm 0.25.0 python=3.10 torch=2.1.0 hf=4.34.0
djl-tensorrtllm 0.26.0 python=3.10 torch=2.1.0 hf=4.36.2
djl-tensorrtllm 0.27.0 python=3.10 torch=2.1.2 hf=4.38.1
djl-tensorrtllm 0.28.0 python=3.10 torch=2.2.1 hf=4.40.0
djl-tensorrtllm 0.29.0 python=3.10 torch=2.3.1 hf=4.42.4
djl-tensorrtllm 0.30.0 python=3.10 torch=2.4.0 hf=4.44.2
djl-tensorrtllm 0.32.0 python=3.10 torch=2.4.0 hf=4.44.2
djl-tensorrtllm 0.33.0 python=3.12
djl-lmi 0.28.0 python=3.10 torch=2.3.0 hf=4.41.1 vllm=0.4.2 lmi_dist=10.0.0
djl-lmi 0.29.0 python=3.10 torch=2.3.1 hf=4.43.2 vllm=0.5.3.post1 lmi_dist=11.0.0
djl-lmi 0.30.0 python=3.10 torch=2.4.0 hf=4.45.2 vllm=0.6.2 lmi_dist=12.0.0
djl-lmi 0.31.0 python=3.11 torch=2.5.1 hf=4.45.2 vllm=0.6.3.post1 lmi_dist=13.0.0
djl-lmi 0.32.0 python=3.11 torch=2.5.1 hf=4.46.3 vllm=0.7.3 lmi_dist=13.0.0
djl-lmi 0.33.0 python=3.12 torch=2.6.0 hf=4.51.3 vllm=0.8.4
djl-lmi 0.34.0 python=3.12 torch=2.8.0 hf=4.55.2 vllm=0.10.2
djl-lmi 0.35.0 python=3.12 torch=2.9.0 hf=4.57.1 vllm=0.11.1
djl-lmi 0.36.0 python=3.12 torch=2.11.0 vllm=0.23.0
djl-lmi 0.38.0 python=3.12 torch=2.13.0 vllm=0.28.0
"""
# CUDA and lowest compute capability: NVIDIA's Triton release notes of that month (capability of
# 24.05 and 24.09: of the months around them). Python: triton-inference-server/server,
# docs/introduction/compatibility.md, which starts at 24.04.
TRITON_CONTENTS = {
    "23.12": ("12.3", "sm60", "unknown"),
    "24.01": ("12.3", "sm60", "unknown"),
    "24.03": ("12.4", "sm60", "unknown"),
    "24.05": ("12.4", "sm60", "3.10"),
    "24.09": ("12.6", "sm60", "3.10"),
    "25.04": ("12.9", "sm75", "3.12"),
    "25.09": ("13.0", "sm75", "3.12"),
    "26.05": ("13.2", "sm75", "3.12"),
}
# DJL images that AWS's list had and the SDK's tables lack: framework, version, tag. The list has
# them among the LMI images; aws/deep-learning-containers issue 5355 (2025-10-09) quotes it.
DJL_BUILDS = """
djl-neuronx 0.30.0 0.30.0-neuronx-sdk2.20.1
"""
# Every build that AWS's list ever had and the SDK's tables lack, without rebuilds of a tag:
# framework, version, Python, system, Neuron SDKs.
NEURON_BUILDS = """
pytorch-inference-neuron 1.5.1 py36 ubuntu16.04
pytorch-inference-neuron 1.7.1 py36 ubuntu18.04
pytorch-inference-neuron 1.9.1 py37 ubuntu18.04 1.16.1
pytorch-inference-neuron 1.10.1 py37 ubuntu18.04 1.17.0 1.17.1
pytorch-inference-neuron 1.10.2 py37 ubuntu18.04 1.19.0
pytorch-inference-neuron 1.12.1 py38 ubuntu20.04 2.5.0
pytorch-inference-neuron 1.13.1 py38 ubuntu20.04 2.10.0
pytorch-inference-neuron 1.13.1 py310 ubuntu20.04 2.11.0 2.12.0 2.13.2 2.14.1 2.15.0 2.17.0
pytorch-inference-neuron 1.13.1 py310 ubuntu20.04 2.18.0 2.18.1 2.18.2 2.19.0 2.19.1
pytorch-inference-neuron 1.13.1 py310 ubuntu20.04 2.20.0 2.20.1 2.20.2
pytorch-inference-neuronx 1.13.0 py38 ubuntu20.04 2.9.0
pytorch-inference-neuronx 1.13.1 py38 ubuntu20.04 2.10.0
pytorch-inference-neuronx 1.13.1 py310 ubuntu20.04 2.11.0 2.12.0 2.13.2 2.14.1 2.15.0 2.17.0
pytorch-inference-neuronx 1.13.1 py310 ubuntu20.04 2.18.0 2.18.1 2.18.2 2.19.0 2.19.1
pytorch-inference-neuronx 1.13.1 py310 ubuntu20.04 2.20.0 2.20.1 2.20.2
pytorch-inference-neuronx 2.1.1 py310 ubuntu20.04 2.17.0
pytorch-inference-neuronx 2.1.2 py310 ubuntu20.04 2.18.0 2.18.1 2.18.2 2.19.0 2.19.1
pytorch-inference-neuronx 2.1.2 py310 ubuntu20.04 2.20.0 2.20.1 2.20.2
pytorch-inference-neuronx 2.5.1 py310 ubuntu22.04 2.21.0 2.21.1 2.22.0
pytorch-inference-neuronx 2.6.0 py310 ubuntu22.04 2.23.0
pytorch-inference-neuronx 2.7.0 py310 ubuntu22.04 2.24.0 2.24.1 2.25.0
pytorch-inference-neuronx 2.8.0 py311 ubuntu22.04 2.26.0 2.26.1
pytorch-inference-neuronx 2.9.0 py312 ubuntu24.04 2.27.1 2.28.0 2.29.0 2.29.1 2.30.0 2.31.0 2.31.1
huggingface-pytorch-inference-neuron 1.10.2-transformers4.20.1 py37 ubuntu18.04 1.19.1
huggingface-vllm-inference-neuronx 0.11.0-optimum0.4.5 py310 ubuntu22.04 2.26.1
"""
# Neuron SDKs whose runtime may not start on an older Neuron driver. Columns: the SDK from which a
# row holds (until the next row's), its runtime library, the oldest driver ("unknown" without a
# source), and a remark. The driver is the host's: botocore gives the driver of each
# InferenceAmiVersion. The source is aws-neuron/aws-neuron-sdk at 81ce03ae (2026-08-21),
# release-notes/components/runtime.rst (AWS names no oldest driver of earlier SDKs for Inferentia 2
# and Trainium 1).
NEURON_DRIVERS = (
    (
        "2.30.0",
        "2.32",
        "2.27",
        "AWS's release notes say that this runtime does not initialise on driver 2.26 or older",
    ),
    (
        "2.31.0",
        "2.33",
        "unknown",
        "AWS's release notes announced a fix for the runtime before it, which needs driver 2.27, "
        "and do not say that this one has it",
    ),
)
DEFAULT_AMIS: dict[str, tuple[str | None, str]] = {
    "cpu": (None, "no accelerator: any host runs the image"),
    "cuda 11": (
        None,
        "every default GPU host has NVIDIA driver 470 (CUDA 11.4) or newer, which runs CUDA 11 "
        "(SageMaker AI Developer Guide, GPU driver versions)",
    ),
    "cuda 12": (
        "al2-ami-sagemaker-inference-gpu-3-1",
        "default hosts of ml.g4dn, ml.g5 and ml.p4d have driver 470, too old for CUDA 12; driver "
        "550 is what AWS tests its CUDA 12 images with, and the newer AMI fails with them "
        "(aws/deep-learning-containers, test/test_utils/constants.py and pull request 6187)",
    ),
    "cuda 13": (
        "al2023-ami-sagemaker-inference-gpu-4-1",
        "only this AMI has a driver (580) that runs CUDA 13 "
        "(aws/deep-learning-containers, test/test_utils/constants.py)",
    ),
    "neuron": (None, "Inferentia 1 hosts take no InferenceAmiVersion"),
    "neuronx": (
        "al2-ami-sagemaker-inference-neuron-2",
        "the only AMI for Inferentia 2 and Trainium (botocore, ProductionVariant)",
    ),
}
