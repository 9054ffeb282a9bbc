"""AWS's images, on which Slipway's Triton images are built."""


def base_tag(version: str) -> str:
    """Returns the beginning of the tag of Slipway's Triton container, which names its base."""
    return f"triton{version}"
