"""Diagrams of flows, with exchanges and fused segments marked: Mermaid text and SVG.

Imports `flow` and the leaves. Begin with `diagram`.
"""

from cutwater.flow.drawing.mermaid import mermaid
from cutwater.flow.drawing.svg import svg

__all__ = ["mermaid", "svg"]
