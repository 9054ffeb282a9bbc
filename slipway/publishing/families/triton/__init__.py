"""What publishing does for Triton beyond its packaging."""
