"""The kit that draws every picture of the documentation; `diagram` explains how."""

from tools.pictures.kit.diagram import Arrow, Box, Diagram, Group
from tools.pictures.kit.routes import Way

__all__ = ["Arrow", "Box", "Diagram", "Group", "Way"]
