"""The libraries that run compiled graphs inside a worker; the manifest names the runtime.

A worker imports this: it keeps to Python 3.10, NumPy and the framework.
"""
