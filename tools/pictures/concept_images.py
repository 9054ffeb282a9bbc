"""Images: a tag is made of the base and of the sources' hash."""

from tools.pictures.kit import Arrow, Box, Diagram, Group

PICTURES = [
    Diagram(
        name="concept-images",
        title="Where container images come from",
        description=(
            "The image stack builds the sources of a container on a base image with CodeBuild, and "
            "pushes two images to ECR. The tag is the base and a hash of the sources. One image "
            "serves on an endpoint, the other runs compile jobs. Endpoints of LMI and Triton pull "
            "AWS's own images, which nobody builds."
        ),
        columns=(126, 142, 196, 142),
        column_gap=(30, 42, 30),
        row_gap=(30, 70),
        boxes=[
            Box("sources", (0, 0), "Sources", "`containers/`\n`tensorrt`"),
            Box("base", (0, 1), "Base image", "NVIDIA's TensorRT 10.13"),
            Box(
                "build",
                (1, 0),
                "Image stack",
                "CodeBuild builds each tag that is new, one after another.",
                rows=2,
            ),
            Box("serving", (2, 0), "Serving image", "`trt10.13-HASH`", kind="accent"),
            Box("compiler", (2, 1), "Compiling image", "`trt10.13-HASH-compiler`", kind="accent"),
            Box("endpoint", (3, 0), "Endpoint", "GPT-2 on TensorRT"),
            Box("job", (3, 1), "Compile job", "of `slipway publish`"),
            Box("aws", (2, 2), "AWS's image", "`djl-inference:TAG`", kind="quiet"),
            Box("lmi", (3, 2), "Endpoint", "a model on LMI"),
        ],
        arrows=[
            Arrow("sources", "build"),
            Arrow("base", "build"),
            Arrow("build", "serving"),
            Arrow("build", "compiler"),
            Arrow("serving", "endpoint"),
            Arrow("compiler", "job"),
            Arrow("aws", "lmi"),
        ],
        groups=[
            Group("ECR in your account", ("serving", "compiler")),
            Group("AWS's registry", ("aws",)),
        ],
    )
]
