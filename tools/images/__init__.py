"""Builds Slipway's container images with a Docker engine of this machine: `make images`.

`docker info` finds the engine. Without one, a root user of Debian gets an engine of the project's
own: a dockerd from Debian's package. Its data are in the user's cache, and it ends with the
command. Its containers have the machine's network, or none.

Each image is built by its unmodified Dockerfile. Its base is pulled where the registry lets this
machine. Elsewhere a stand-in takes the base's place: Debian, with a Python of this machine's in the
version that the base has. A stand-in has no CUDA, no TensorRT and no Neuron SDK, so that its images
serve on the processor alone. Every result names the base that it was built on.
"""
