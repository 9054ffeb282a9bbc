"""The architecture: from files over a plan and a template to an account, in one direction."""

from tools.pictures.kit import Arrow, Box, Diagram, Group, Way

PICTURES = [
    Diagram(
        name="architecture",
        title="The architecture of Slipway",
        description=(
            "slipway/config loads a YAML file. slipway/planning resolves it to a plan, with facts, "
            "environments and the lock file. The stacks render the plan as a template, and "
            "CloudFormation creates the endpoint from it. Beside them, slipway/publishing sends "
            "model files to the artifact bucket and writes the lock file, and slipway/operations "
            "looks at the endpoint. AWS and the embedded AWS take the same templates and files."
        ),
        columns=(143, 156, 156, 154),
        column_gap=(23, 23, 43),
        row_gap=46,
        boxes=[
            Box("load", (0, 0), "Load", "`slipway/config`\nreads one YAML file, and nothing else."),
            Box(
                "resolve",
                (1, 0),
                "Resolve",
                "`slipway/planning`\nmakes a plan. It reads no file, clock or network.",
                kind="accent",
            ),
            Box("render", (2, 0), "Render", "`stacks`\nmake a template. They decide nothing."),
            Box("cloudformation", (3, 0), "CloudFormation", "`cdk deploy`\nhands it the template."),
            Box("facts", (0, 1), "Facts", "Instance types, images, environments.", kind="quiet"),
            Box("lock", (1, 1), "Lock file", "The digest of the model's files.", kind="quiet"),
            Box("look", (2, 1), "Look", "`slipway/operations`\nasks, and changes nothing."),
            Box("endpoint", (3, 1), "Endpoint", "SageMaker runs the container."),
            Box(
                "files",
                (0, 2),
                "Model files",
                "A folder, a commit of the Hub, or S3.",
                kind="quiet",
            ),
            Box("publish", (1, 2), "Publish", "`slipway/publishing`\nnever runs in a synth."),
            Box("bucket", (3, 2), "Artifact bucket", "`artifacts/DIGEST/`\nin S3, never changed."),
        ],
        arrows=[
            Arrow("load", "resolve"),
            Arrow("resolve", "render"),
            Arrow("render", "cloudformation"),
            Arrow("facts", "resolve", way=Way(leave="top", enter="bottom", enter_shift=-45)),
            Arrow("lock", "resolve", "names the files"),
            Arrow("look", "endpoint"),
            Arrow("cloudformation", "endpoint", "creates"),
            Arrow("files", "publish"),
            Arrow("publish", "lock", "writes"),
            Arrow("publish", "bucket", "sends the files"),
            Arrow("bucket", "endpoint", "model data"),
        ],
        groups=[Group("AWS or embedded AWS", ("cloudformation", "endpoint", "bucket"))],
        note="Solid boxes are code or services. Dashed boxes are files.",
    )
]
