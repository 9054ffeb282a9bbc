"""A config's life: from a YAML file to an endpoint, and to nothing left."""

from tools.pictures.kit import Arrow, Box, Diagram, Way

PICTURES = [
    Diagram(
        name="config-life",
        title="The life of a model config",
        description=(
            "A YAML file is validated and planned without an account. slipway publish sends "
            "the files to S3 and writes the lock file. cdk diff shows the change for review. "
            "cdk deploy makes the endpoint, slipway status says what is wrong with it, and "
            "cdk destroy removes it. Publish, deploy and destroy change the account."
        ),
        columns=(154, 154, 154, 154),
        column_gap=29,
        row_gap=44,
        boxes=[
            Box("write", (0, 0), "Write", "One YAML file\ndescribes one endpoint.", number=1),
            Box(
                "validate", (1, 0), "Validate", "`slipway validate`\nlists each mistake.", number=2
            ),
            Box("plan", (2, 0), "Plan", "`slipway plan`\nshows what it makes and costs.", number=3),
            Box(
                "publish",
                (3, 0),
                "Publish",
                "`slipway publish`\nsends files to S3, writes the lock.",
                kind="accent",
                number=4,
            ),
            Box("review", (0, 1), "Review", "`cdk diff`\nshows each changed setting.", number=5),
            Box(
                "deploy",
                (1, 1),
                "Deploy",
                "`cdk deploy`\nmakes or updates the endpoint.",
                kind="accent",
                number=6,
            ),
            Box("watch", (2, 1), "Watch", "`slipway status`\nsays what is wrong.", number=7),
            Box(
                "destroy",
                (3, 1),
                "Destroy",
                "`cdk destroy`\nremoves it, and keeps the files.",
                kind="accent",
                number=8,
            ),
        ],
        arrows=[
            Arrow("write", "validate"),
            Arrow("validate", "plan"),
            Arrow("plan", "publish"),
            Arrow("publish", "review", way=Way(leave="bottom", enter="top")),
            Arrow("review", "deploy"),
            Arrow("deploy", "watch"),
            Arrow("watch", "destroy"),
        ],
        note=(
            "The coloured steps change the account. A deploy that fails is rolled back, and a "
            "destroyed endpoint is deployed again from the files in S3."
        ),
    )
]
