"""One concern of an endpoint each."""
