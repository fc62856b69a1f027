"""Render the jinja2 templates of the report; every text that enters one is escaped."""

import math
from functools import cache
from importlib import resources
from typing import Any


def file_text(name: str) -> str:
    """Return a file that comes with the report."""
    return resources.files("nerm.report").joinpath(name).read_text(encoding="utf-8")


def render(name: str, **values: Any) -> str:
    """Return a template of the report, filled in.

    Parameters
    ----------
    name
        Of the template's file.
    values
        By the names in the template.
    """
    return str(_environment().from_string(file_text(name)).render(**values))


@cache
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(fixed=fixed, per=per, signed=signed)
    return environment


def fixed(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, a dash where it is not defined."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"


def signed(value: float, digits: int = 3) -> str:
    """Return a number with its sign."""
    return f"{value:+.{digits}f}".replace("-", "−") if math.isfinite(value) else "–"


def per(rate: float) -> str:
    """Return a rate per 1,000."""
    return fixed(1000 * rate, 0)
