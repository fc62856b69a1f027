"""Certificates: bound the distance of a hypothesis from the optimum, whichever solver computed it."""
