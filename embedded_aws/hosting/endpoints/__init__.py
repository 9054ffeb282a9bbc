"""The operations on endpoints. `service` has them; `rollout` plans how an update moves traffic."""
