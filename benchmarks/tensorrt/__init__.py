"""The TensorRT container's serving path on its CPU back end, against the published layout."""
