"""Certificates: what proves an answer, whoever computed it."""
