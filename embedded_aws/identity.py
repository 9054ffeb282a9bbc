"""Who and where the embedded AWS is, for its own modules and for what starts it.

Imports nothing: `slipway local` must not load a mock of all of AWS to print a variable.
"""

from __future__ import annotations

# The account moto uses throughout; the `local` environment pins it, so that a stack built for it
# cannot be deployed with a real account's credentials.
ACCOUNT_ID = "123456789012"
# Well-formed and worthless: SigV4 needs some key to sign with.
ACCESS_KEY_ID = "embedded-aws"
SECRET_ACCESS_KEY = "embedded-aws"  # noqa: S105  # not a secret: nothing checks it
# Answers with the endpoints and their status. No bucket can have this name, so it hides nothing of
# path-style S3.
STATUS_PATH = "/_slipway/status"
