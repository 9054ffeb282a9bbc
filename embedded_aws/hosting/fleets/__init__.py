"""What runs for an endpoint.

An `endpoint` has a `fleet` in service, and during an update another one. A fleet has the variants
of one endpoint configuration. A `running_variant` has a container: the network interface, the key's
grant and the model data come before it, and `connections` lead to it. An `instance_group` hosts
inference components, whose copies are running variants too.
"""
