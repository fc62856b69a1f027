"""Rows beyond memory, and beyond one machine: a fit as a few passes over chunks, each a map and a sum."""

from nerm.chunks.chunked_problem import ChunkedProblem
from nerm.chunks.pieces import save_chunk
from nerm.chunks.source import Chunks

__all__ = ["ChunkedProblem", "Chunks", "save_chunk"]
