"""Hostile problems and files, checked by a reference that shares no code with nerm (docs/reliability.md).

`test_adversary.py` runs a part of them in the gate; `python -m tests.adversary --seconds 1800` runs longer.
"""
