"""Verifies the Neuron container on an Inferentia or Trainium instance: `make verify-neuron`.

It needs the instance's driver and a Python with AWS's packages; neither Docker nor an account. The
container's own programs compile and serve, as the images' entry points start them.
"""
