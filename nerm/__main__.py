"""`python -m nerm` is the command `nerm`."""

from __future__ import annotations

if __name__ == "__main__":
    from nerm.cli import main

    main()
