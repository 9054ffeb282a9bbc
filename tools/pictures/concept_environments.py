"""Environments: one model's file becomes one endpoint in each of them."""

from tools.pictures.kit import Arrow, Box, Diagram, Group

PICTURES = [
    Diagram(
        name="concept-environments",
        title="One model in two environments",
        description=(
            "A model's file and environments.yaml give one plan for each environment. The plan "
            "for local deploys the sample to the embedded AWS, as the endpoint "
            "gpt2-autocomplete-local. The plan for production deploys the release to a real "
            "account, as the endpoint gpt2-autocomplete-production, beside a foundation that all "
            "models of production share."
        ),
        columns=(170, 160, 236),
        column_gap=(44, 58),
        row_gap=(72, 24),
        boxes=[
            Box(
                "files",
                (0, 0),
                "Files in git",
                "The model's file, with a section for what differs.\n\n"
                "environments.yaml, with each account and region.",
                rows=2,
            ),
            Box("local", (1, 0), "Plan for `local`", "Deploys the sample."),
            Box("local_endpoint", (2, 0), "Endpoint", "`gpt2-autocomplete-local`"),
            Box(
                "production", (1, 1), "Plan for `production`", "Deploys the release.", kind="accent"
            ),
            Box(
                "production_endpoint",
                (2, 1),
                "Endpoint",
                "`gpt2-autocomplete-production`",
                kind="accent",
            ),
            Box("foundation", (2, 2), "Foundation", "Bucket, key, topic: shared by all models."),
        ],
        arrows=[
            Arrow("files", "local"),
            Arrow("files", "production"),
            Arrow("local", "local_endpoint", "deploy"),
            Arrow("production", "production_endpoint", "deploy", tone="accent"),
        ],
        groups=[
            Group("Embedded AWS, 123456789012", ("local_endpoint",)),
            Group("Account 210987654321, eu-west-1", ("production_endpoint", "foundation")),
        ],
    )
]
