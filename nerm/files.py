"""Write files atomically."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def write_atomically(path: str | os.PathLike[str], mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    r"""Write to a temporary file and move it to `path` when it is complete.

    After a crash, a full disk or an error inside the `with` block, an existing file at `path` is unchanged.

    Parameters
    ----------
    path
        The file to write.
    mode
        ``"wb"`` or ``"w"``.
    options
        Passed to `open`, such as ``encoding``.

    Yields
    ------
    file object
        The temporary file, which is flushed to disk before it is moved.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_atomically(f"{folder}/a.txt", "w", encoding="utf-8") as file:
    ...         _ = file.write("whole")
    ...     (Path(folder) / "a.txt").read_text(), len(list(Path(folder).iterdir()))
    ('whole', 1)

    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, mode.replace("w", "x"), **options) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
