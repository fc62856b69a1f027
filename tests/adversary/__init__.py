"""The attack: hostile problems and files, judged by somebody who shares no code with nerm (docs/reliability.md).

A part of it runs in the gate (`test_adversary.py`); `python -m tests.adversary --seconds 1800` runs as long
as asked.
"""
