"""The names of columns: from the header, from whoever reads, or made up."""

from collections import Counter
from collections.abc import Sequence

from nerm.errors import InvalidInputError


def header_of(
    first: Sequence[str], rows: Sequence[Sequence[str]], source: str
) -> tuple[list[str], tuple[str, ...]]:
    """Return the names in a header, and a note on those that were made up for columns without one.

    A column of row names often has none: pandas writes an empty name for it, R leaves its field out.

    Parameters
    ----------
    first, rows
        The fields of the header and of some rows below it.
    source
        What messages call the file.

    Examples
    --------
    >>> header_of(["", "age"], [["1", "31"]], "people.csv")
    (['c1', 'age'], ("column 1 has no name in the header and is called 'c1'",))
    >>> header_of(["age", "sex"], [["1", "31", "f"]], "people.csv")[0]
    ['c1', 'age', 'sex']
    """
    names = [name.strip() for name in first]
    if rows and all(len(row) == len(names) + 1 for row in rows):
        names = ["", *names] if any(row[-1].strip() for row in rows) else [*names, ""]
    blank = [j for j, name in enumerate(names) if not name]
    if len(blank) > len(names) / 2:
        must, got = (
            f"the header of {source!r} must name its columns",
            f"no name for {len(blank)} of {len(names)}",
        )
        do = "Leave out lines above it with --skip-lines, or use --no-header if the first line is data"
        raise InvalidInputError(must, got, do)
    for j in blank:
        name = f"c{j + 1}"
        while name in names:
            name += "_"
        names[j] = name
    notes = tuple(f"column {j + 1} has no name in the header and is called {names[j]!r}" for j in blank)
    return names, notes


def check_names(names: list[str], source: str, *, given: bool) -> None:
    """Refuse tables of one column, and columns without a name or with the same one."""
    if len(names) < 2:
        do = "Name the separator with --separator"
        raise InvalidInputError(f"{source!r} must have at least two columns", "one column", do)
    where = "--columns" if given else f"the header of {source!r}"
    blank = [j + 1 for j, name in enumerate(names) if not name]
    if blank:
        must = f"{where} must name every column"
        got = f"no name for column {blank[0]}" + (f" (and {len(blank) - 1} more)" if len(blank) > 1 else "")
        raise InvalidInputError(must, got, "Add it")
    name, times = min(Counter(names).items(), key=lambda item: (item[1] < 2, item[0]))
    if times > 1:
        raise InvalidInputError(
            f"{where} must name every column once", f"{name!r} {times} times", "Rename one"
        )
