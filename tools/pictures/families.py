"""The rooms of a serving family, and who asks them."""

from tools.pictures.kit import Arrow, Box, Diagram, Group

PICTURES = [
    Diagram(
        name="families",
        title="The rooms of a serving family",
        description=(
            "Each stage has a folder of each family. Load asks the family's section of the schema. "
            "Resolve asks its situation for image, variables, memory and rules. Publish asks its "
            "packaging, and the embedded AWS its program. The situation reads the section and the "
            "family's fact tables. The program runs the container, which the image stack builds."
        ),
        columns=(146, 160, 160, 150),
        column_gap=22,
        row_gap=46,
        boxes=[
            Box("load", (0, 0), "Load", "`slipway/config`"),
            Box("resolve", (1, 0), "Resolve", "`slipway/planning`"),
            Box("publish", (2, 0), "Publish", "`slipway/publishing`"),
            Box("embedded", (3, 0), "Embedded AWS", "`embedded_aws`"),
            Box("section", (0, 1), "Section", "`serving/NAME`\nfields and limits."),
            Box(
                "situation",
                (1, 1),
                "Situation",
                "`families/NAME`\nimage, variables, memory, rules.",
                kind="accent",
            ),
            Box("packaging", (2, 1), "Packaging", "`families/NAME`\nfiles beside the weights."),
            Box("program", (3, 1), "Program", "`families/NAME`\nwhat stands for the image."),
            Box(
                "facts",
                (1, 2),
                "Facts",
                "`facts/NAME`\nversions, with sources.",
                kind="quiet",
            ),
            Box("stack", (2, 2), "Image stack", "`stacks`\nbuilds the family's images."),
            Box("container", (3, 2), "Container", "`containers/NAME`\nserves and compiles."),
        ],
        arrows=[
            Arrow("load", "section"),
            Arrow("resolve", "situation", "asks"),
            Arrow("publish", "packaging", "asks"),
            Arrow("embedded", "program", "asks"),
            Arrow("situation", "section"),
            Arrow("packaging", "situation"),
            Arrow("situation", "facts", "reads"),
            Arrow("program", "container", "runs"),
            Arrow("stack", "container"),
        ],
        groups=[Group("rooms", ("section", "situation", "packaging", "program"))],
        note=(
            "NAME is tensorrt, lmi, triton, neuron or custom. The code of the stages names none of "
            "them: each stage has a registry by `serving.container`."
        ),
    )
]
