"""Fit on more rows than fit into memory or on one machine.

A fit makes a few passes over chunks of rows. Each pass computes a result per chunk and adds up the results.
"""

from nerm.chunks.chunked_problem import ChunkedProblem
from nerm.chunks.pieces import save_chunk
from nerm.chunks.source import Chunks

__all__ = ["ChunkedProblem", "Chunks", "save_chunk"]
