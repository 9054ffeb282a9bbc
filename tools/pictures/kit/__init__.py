"""The kit that draws every picture of the documentation; `diagram` explains how."""

from tools.pictures.kit.diagram import Diagram
from tools.pictures.kit.parts import Arrow, Box, Group
from tools.pictures.kit.routes import Way

__all__ = ["Arrow", "Box", "Diagram", "Group", "Way"]
