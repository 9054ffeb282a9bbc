"""Verifies the TensorRT and Triton containers on a GPU: `make verify-gpu`.

It needs Linux, an NVIDIA driver and Python packages; neither Docker nor an account. The container's
own programs compile and serve, as the images' entry points start them.
"""
