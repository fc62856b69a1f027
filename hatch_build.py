"""Compile nerm's numba functions while `pip install .` or `pip install -e .` builds the package.

The compiled code is put into the wheel, beside its modules. It is valid for one version of Python and of
numba and for one kind of processor; numba ignores it elsewhere. Such a wheel has the tag of this platform, so
it cannot be published on PyPI by mistake. Nothing is compiled

- from an unpacked sdist, which `python -m build` uses: published wheels are pure;
- if the environment variable NERM_COMPILE is 0;
- if numba is older than 0.68: its cache is not valid after the files are copied;
- if anything fails: the package is installed without compiled code, and numba compiles at the first use.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NEEDED = ("numba", "numpy", "scipy", "threadpoolctl", "lazy-loader")  # by nerm.warmup


class CompileHook(BuildHookInterface):  # type: ignore[type-arg]
    """Put compiled code into wheels that are built in the repository."""

    def _is_wanted(self) -> bool:
        return os.environ.get("NERM_COMPILE", "1") != "0" and not (Path(self.root) / "PKG-INFO").exists()

    def dependencies(self) -> list[str]:
        """Return what nerm.warmup needs, with the bounds of the package itself."""
        return [
            one for one in self.metadata.core.dependencies if self._is_wanted() and one.startswith(NEEDED)
        ]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add the compiled code to the wheel; in an editable installation it stays in place."""
        if not self._is_wanted():
            return
        try:
            number = tuple(map(int, metadata.version("numba").split(".")[:2]))
            if version == "editable":
                self._compile(Path(self.root))
            elif number >= (0, 68):
                self._copy = tempfile.TemporaryDirectory()
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(Path(self.root) / "nerm", Path(self._copy.name) / "nerm", ignore=ignored)
                build_data["force_include"] |= self._compile(Path(self._copy.name))
                build_data |= {"pure_python": False, "infer_tag": True}
        except Exception as error:  # never a reason not to install
            self.app.display_warning(f"nerm was not compiled ahead: {error}")

    def _compile(self, folder: Path) -> dict[str, str]:
        """Run nerm.warmup in a folder; return the files that numba wrote there and their paths in a wheel."""
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        environment.pop("NUMBA_CACHE_DIR", None)  # then the cache is beside the source
        command = [sys.executable, "-m", "nerm.warmup"]
        subprocess.run(command, cwd=folder, env=environment, check=True, timeout=600, capture_output=True)
        return {str(file): file.relative_to(folder).as_posix() for file in folder.glob("nerm/**/*.nb[ci]")}
