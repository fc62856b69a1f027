"""Functions that numba compiles: their cache on disk, and a log message when one is compiled.

numba keeps compiled code in the folder __pycache__ beside the source, for one version of Python and of numba
and for one kind of processor; it ignores other files there. If it cannot write to that folder, it uses
another one. Then the files that an installation left beside the source are copied to the other folder.

numba compares a file of its cache with the source of one module only. So a compiled function must not call
compiled functions, nor read tuned constants, of other modules of nerm.
"""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from nerm.files import write_atomically

MESSAGE = "compiling, once on this computer: this takes some seconds (python -m nerm.warmup compiles ahead)"
logger = logging.getLogger("nerm")


class _Announcement(event.Listener):
    """Log one message when the first function of nerm is compiled in this process."""

    is_made = False

    def on_start(self, event: Any) -> None:
        if not self.is_made and event.data["dispatcher"].py_func.__module__.startswith("nerm."):
            self.is_made = True
            logger.info(MESSAGE)

    def on_end(self, event: Any) -> None:
        """Do nothing."""


event.register("numba:compile", _Announcement())


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function when it is first called.

    The compiled code is kept on disk and does not hold the lock of the interpreter.

    Parameters
    ----------
    options
        Further options of `numba.njit`.
    """

    def decorate(function: Any) -> Any:
        try:
            found = numba.njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # numba can write to no folder
            return numba.njit(nogil=True, **options)(function)
        if hasattr(found, "stats"):  # not if numba is disabled
            _copy_cache(function, Path(found.stats.cache_path))
        return found

    return decorate


def _copy_cache(function: Any, folder: Path) -> None:
    """Copy the compiled code beside the source to `folder`, unless the files there are newer."""
    source = Path(function.__code__.co_filename)
    for file in (source.parent / "__pycache__").glob(f"{source.stem}.{function.__qualname__}-*.nb?"):
        target = folder / file.name
        if not target.exists() or target.stat().st_mtime < file.stat().st_mtime:
            with open(file, "rb") as given, write_atomically(target) as out:
                shutil.copyfileobj(given, out)
