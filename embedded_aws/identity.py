"""The account, the credentials and the status path of the embedded AWS.

It imports nothing: `slipway local` must not load a mock of all of AWS to print a variable.
"""

# The account that moto uses. The `local` environment pins it, so that a stack built for it cannot
# be deployed with a real account's credentials.
ACCOUNT_ID = "123456789012"
# Well-formed but worthless: SigV4 needs a key to sign with.
ACCESS_KEY_ID = "embedded-aws"
SECRET_ACCESS_KEY = "embedded-aws"  # noqa: S105  # not a secret: nothing checks it
# Answers with the endpoints and their status. No bucket can have this name, so it hides no
# path-style address of S3.
STATUS_PATH = "/_slipway/status"
# A POST lets a minute pass in the account.
MINUTE_PATH = "/_slipway/minute"
