"""Starts containers: `program_launcher` as processes, `image_launcher` in their images."""
