"""Bodies that the handler and the TensorRT container refuse with the same words."""

from __future__ import annotations

import json

REFUSED_ALIKE: list[bytes] = [
    b"",
    b"{",
    b"\xff{}",
    b"[" * 100_000,
    b"[]",
    b'"text"',
    b"null",
    b"{}",
    b'{"inputs": NaN}',
    b'{"inputs": -Infinity}',
    b'{"inputs": "a", "inputs": "b"}',
    b'{"inputs": "a", "parameters": {"seed": 1, "seed": 2}}',
    b'{"inputs": 5}',
    b'{"inputs": true}',
    b'{"inputs": {}}',
    b'{"inputs": null}',
    b'{"inputs": ""}',
    b'{"inputs": []}',
    b'{"inputs": ["a", ""]}',
    b'{"inputs": ["a", 5.5]}',
    b'{"inputs": ["a", ["b"]]}',
    b'{"inputs": "ab\\ud800"}',
    b'{"inputs": ["a", "\\udfff"]}',
    b'{"inputs": "a", "parameters": []}',
    b'{"inputs": "a", "parameters": null}',
    b'{"inputs": "a", "parametres": {}}',
    *(
        json.dumps({"inputs": "a", "parameters": parameters}).encode()
        for parameters in [
            {"max_new_tokens": 0},
            {"max_new_tokens": 43},
            {"max_new_tokens": 4.0},
            {"max_new_tokens": "4"},
            {"max_new_tokens": True},
            {"max_new_tokens": None},
            {"max_new_tokens": 10**30},
            {"do_sample": 1},
            {"do_sample": "true"},
            {"return_full_text": 0},
            {"temperature": 0.5},
            {"seed": 1, "top_k": 1},
            {"do_sample": False, "top_p": 0.5},
            {"do_sample": True, "temperature": 0},
            {"do_sample": True, "temperature": 101},
            {"do_sample": True, "temperature": "1"},
            {"do_sample": True, "temperature": True},
            {"do_sample": True, "top_k": 0},
            {"do_sample": True, "top_k": 1_000_001},
            {"do_sample": True, "top_k": 1.5},
            {"do_sample": True, "top_p": 0},
            {"do_sample": True, "top_p": 1.1},
            {"do_sample": True, "top_p": [0.5]},
            {"do_sample": True, "seed": -1},
            {"do_sample": True, "seed": 2**63},
        ]
    ),
]
