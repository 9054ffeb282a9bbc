"""Containers of a container engine of this machine, for endpoints that run in their images.

`opening` finds or starts an engine, `engine` speaks to it by its command line, and `images` finds
the image that an address in ECR means. `supervisor` is a program that runs one container, and
`tunnel` carries requests to it. The container itself has no network.
"""
