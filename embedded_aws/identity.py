"""The account of the embedded AWS, its own paths, and the keys that its clients sign with.

It imports little: `slipway local` must not load a mock of all of AWS to print a variable.
"""

import hmac
from dataclasses import dataclass, field

# The account that moto uses. The `local` environment pins it, so that a stack built for it cannot
# be deployed with a real account's credentials.
ACCOUNT_ID = "123456789012"
# Its secret is made at each start.
ACCESS_KEY_ID = "embedded-aws"
# Answers with the endpoints and their status. No bucket can have this name, so it hides no
# path-style address of S3.
STATUS_PATH = "/_slipway/status"
# A POST lets a minute pass in the account.
MINUTE_PATH = "/_slipway/minute"
# Answers whether a container of `image`, with each Triton `backend`, could serve here.
SERVABLE_PATH = "/_slipway/servable"


@dataclass(frozen=True)
class Connection:
    """How a client reaches an embedded AWS: its address, and the secret of `ACCESS_KEY_ID`."""

    url: str
    secret_access_key: str = field(repr=False)

    def variables(self) -> dict[str, str]:
        """Returns the variables that point SDKs, the AWS CLI and s5cmd at it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "S3_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def authorization(self, path: str) -> str:
        """Returns the header Authorization with which `slipway local` asks for an own path."""
        token = hmac.new(self.secret_access_key.encode(), path.encode(), "sha256")
        return f"Bearer {token.hexdigest()}"
