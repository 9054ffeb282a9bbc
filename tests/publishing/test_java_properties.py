"""Properties files: what Java's own class reads is what was meant."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.embedded_aws.hosting.families.lmi.djl_serving import find_java
from slipway.java_properties import entries, parse, render

# No lone halves of a letter: a config is UTF-8, which has none.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TROUBLE = {
    "plain": "fp16",
    "empty": "",
    "with spaces": "  two before, two after  ",
    "key=with:both": "a=b:c",
    "#comment": "# is no comment here",
    "!other": "!",
    "back\\slash": "C:\\models\\t5\\",
    "lines": "first\nsecond\r\nthird\tcolumn\f",
    "caf\u00e9": "na\u00efve \u4f60\u597d",
    "beyond": "\U0001f600",
    "json": '{"a": ["b", 1]}',
    "placeholder": "s3://{artifact_bucket}/artifacts/",
}
CORNERS = [
    (b"", {}),
    (b"# a comment\n! another\n\n   \n", {}),
    (b"a=1\r\nb: 2\rc 3\n", {"a": "1", "b": "2", "c": "3"}),
    (b"  a  =  1  \n", {"a": "1  "}),
    (b"a=1,\\\n   2\\\n,3\n", {"a": "1,2,3"}),
    (b"a=1\\\n# no comment", {"a": "1# no comment"}),
    (b"a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
    (b"a\nb=\n", {"a": "", "b": ""}),
    (b"a\\=b=c=d\n", {"a=b": "c=d"}),
    (b"a=\\q\\u0041\n", {"a": "qA"}),
    (b"a=1\na=2\n", {"a": "2"}),
    (b"a=\xe9\n", {"a": "\u00e9"}),
    (b"a=1\\", {"a": "1"}),
    (b"\\\n\nb=2\n", {"b": "2"}),
    (b"\\\n#a=1\n", {}),
    (b"a=1,\\\n\nb=2\n", {"a": "1,", "b": "2"}),
    (b"a\\ b=1\n", {"a b": "1"}),
    (b" : 1\n", {"": "1"}),
    (b"a==1\nb:=2\nc = = 3", {"a": "=1", "b": "=2", "c": "= 3"}),
]

READER = """
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

class Reader {
    public static void main(String[] paths) throws IOException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);
        for (String path : paths) {
            Properties properties = new Properties();
            try (InputStream stream = new FileInputStream(path)) {
                properties.load(stream);
            }
            StringJoiner pairs = new StringJoiner(",", "{", "}");
            for (String key : new TreeSet<>(properties.stringPropertyNames())) {
                pairs.add(quoted(key) + ":" + quoted(properties.getProperty(key)));
            }
            out.println(pairs);
        }
    }

    static String quoted(String text) {
        StringBuilder json = new StringBuilder("\\"");
        for (char unit : text.toCharArray()) {
            json.append(String.format("\\\\u%04x", (int) unit));
        }
        return json.append('"').toString();
    }
}
"""


@given(st.dictionaries(TEXT, TEXT))
def test_what_is_written_is_read_back(properties):
    assert parse(render(properties)) == properties


def test_a_file_is_ascii_with_one_line_for_each_key():
    content = render(TROUBLE)
    assert content.isascii()
    assert content.count(b"\n") == len(TROUBLE)
    assert content.splitlines()[0] == b"plain=fp16"


@pytest.mark.parametrize(("content", "meant"), CORNERS)
def test_the_formats_corners(content, meant):
    assert parse(content) == meant


def test_entries_keep_what_stands_there_twice_and_their_lines():
    content = b"# first\na=1\nb=2,\\\n  3\n\na=4\n"
    assert entries(content) == [("a", "1", 2), ("b", "2,3", 3), ("a", "4", 6)]


def test_half_an_escape_is_refused():
    with pytest.raises(ValueError, match=r"\\u12 is not an escape"):
        parse(b"a=\\u12")


@pytest.mark.java
def test_java_reads_the_same(tmp_path: Path):
    """Every file that is written, and every corner of the format, against Java's own class."""
    contents = [render(TROUBLE), *(content for content, _ in CORNERS)]
    paths = []
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}.properties"
        path.write_bytes(content)
        paths.append(str(path))
    source = tmp_path / "Reader.java"
    source.write_text(READER)
    run = subprocess.run(
        [find_java(os.environ), str(source), *paths], capture_output=True, text=True, check=True
    )
    read = [json.loads(line) for line in run.stdout.splitlines()]
    assert read[0] == TROUBLE
    assert read == [parse(content) for content in contents]
