"""Families: five kinds of container behind one contract."""

from tools.pictures.kit import Box, Diagram, Group

PICTURES = [
    Diagram(
        name="concept-families",
        title="The five families of containers",
        description=(
            "All five families keep SageMaker's contract: ping and invocations on port 8080. "
            "Slipway builds the images of tensorrt and neuron. AWS has the images of lmi and "
            "triton. An image of your own is custom. tensorrt runs GPT-2 on an NVIDIA GPU, neuron "
            "runs encoders on Inferentia or Trainium, lmi runs large language models, triton "
            "cannot be published yet."
        ),
        columns=(124, 124, 124, 124, 98),
        column_gap=(8, 36, 8, 36),
        row_gap=64,
        boxes=[
            Box(
                "contract",
                (0, 0),
                "One contract for all",
                "`/ping` and `/invocations` on port 8080, the same alarms, scaling and deploys.",
                kind="accent",
                span=5,
            ),
            Box("tensorrt", (0, 1), "`tensorrt`", "GPT-2\nNVIDIA GPU\nengine is compiled"),
            Box("neuron", (1, 1), "`neuron`", "BERT and others\nInferentia\ngraphs are compiled"),
            Box("lmi", (2, 1), "`lmi`", "language models\nNVIDIA GPU\nvLLM and others"),
            Box("triton", (3, 1), "`triton`", "NVIDIA GPU\nnot published yet", kind="quiet"),
            Box("custom", (4, 1), "`custom`", "any model\nany type"),
        ],
        groups=[
            Group("Slipway builds the image", ("tensorrt", "neuron")),
            Group("AWS has the image", ("lmi", "triton")),
            Group("You have it", ("custom",)),
        ],
    )
]
