"""Codes of the form of files and requests."""

from collections.abc import Sequence

from slipway.codes.code import Code
from slipway.codes.entry import Entry

ENTRIES: Sequence[Entry] = (
    Entry(
        Code.FILE_UNREADABLE,
        "The file cannot be read",
        "The operating system does not let Slipway read the file, the file is not UTF-8 text, or "
        "a file of a checkpoint is damaged. The message has the reason.",
        "Correct the file's permissions, save a config as UTF-8, or copy the checkpoint again. "
        "Remove the file if it is no config.",
    ),
    Entry(
        Code.FILE_TOO_LARGE,
        "The file is too large or too deep",
        "A config has a limit on bytes, on values after aliases are expanded, and on levels of "
        "nesting. The limits stop files that would take all memory.",
        "Write large data into files of their own, and name those files under `artifacts`. "
        "Replace aliases of aliases by the values themselves.",
    ),
    Entry(
        Code.NOT_YAML,
        "The file is not valid YAML",
        "The YAML parser cannot read the file at this place. Typical reasons are a missing "
        "quote, a tab, wrong indentation, a tag before a value, or `<<` without a mapping.",
        "Correct the line that the message names. Put a text in quotes if it contains `:`, `#` "
        "or a leading `*`, `&`, `!` or `%`.",
    ),
    Entry(
        Code.NOT_A_MAPPING,
        "A mapping is needed",
        "The file, or an environment in environments.yaml, is empty, a list or a single value. "
        "Slipway expects `KEY: VALUE` lines there.",
        "Write the keys of the section. The [reference](../reference.md) lists them; `slipway "
        "init NAME` writes a valid model config.",
    ),
    Entry(
        Code.DUPLICATE_KEY,
        "The same key is given twice",
        "YAML keeps only one of two equal keys, so one of the values would have no effect.",
        "Delete one of the two lines. The message has the line of the first.",
    ),
    Entry(
        Code.UNKNOWN_FIELD,
        "The field is unknown",
        "The section has no field of this name. Slipway never ignores an unknown field, "
        "because it may be a misspelt one.",
        "Use one of the names that the printed remedy lists. The first line of a config lets "
        "an editor complete the names from `model_configs/schema.json`.",
    ),
    Entry(
        Code.MISSING_FIELD,
        "A required field is missing",
        "The section needs this field, and the field has no default.",
        "Add the field. The printed remedy shows its purpose and an example.",
    ),
    Entry(
        Code.WRONG_TYPE,
        "The value has the wrong type",
        "The field takes another type, for example a number instead of a text. Slipway does "
        'not convert `"2"` to `2`.',
        "Write a number without quotes, a text with quotes, and each item of a list on its own "
        "line behind `- `.",
    ),
    Entry(
        Code.MISPLACED_FIELD,
        "The field is not allowed here",
        "Some fields have one value for all environments, for example a model's `name`. Other "
        "values follow from the file, such as the name of an environment.",
        "Delete the line. Set the field once, in the place that the message names.",
    ),
    Entry(
        Code.NOT_JSON,
        "The request is not JSON",
        "`slipway invoke` sends JSON by default and checks the body first. A shell often "
        "removes the quotes of a body.",
        'Put the body in single quotes: `slipway invoke NAME \'{"inputs": "text"}\'`. For '
        "another format, add `--content-type`.",
    ),
    Entry(
        Code.NOT_TEXT_FORMAT,
        "The file is not protobuf text",
        "A config.pbtxt of Triton is in protobuf's text format. Triton would not load the model.",
        "Correct the place in the message: `name: value`, `name { ... }`, or `name [ ... ]`, with "
        "texts in quotes.",
    ),
    Entry(
        Code.TWO_READINGS,
        "A number with a leading zero",
        "YAML 1.1 reads `010` as octal, which is 8. YAML 1.2 reads it as 10. Programs read one or "
        "the other, so Slipway refuses such a number.",
        "Write the number that you mean without a leading zero. Put a text, such as an account's "
        "number, in quotes.",
    ),
    Entry(
        Code.SEVERAL_DOCUMENTS,
        "The file has several documents",
        "A line `---` begins a new YAML document. Slipway reads one document a file, and would "
        "ignore the others.",
        "Remove the line, or write each model into a file of its own.",
    ),
    Entry(
        Code.TWO_FILES,
        "Two files have the model's name",
        "`NAME.yaml` and `NAME.yml` are both in `model_configs/`. The name of a file is the name "
        "of its model, so only one of the two could be deployed.",
        "Remove or rename one of them.",
    ),
)
