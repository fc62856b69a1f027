"""Finding the published files, plain or gzip'ed, and checking that they are the published ones."""

import gzip
import hashlib
import json
import os
import zlib
from importlib import resources
from pathlib import Path
from typing import Any

from nerm.datasets.dataset import DataUnavailableError
from nerm.errors import InvalidInputError

#: What is published about each data set: its file and checksums, columns, target and viewpoint.
PUBLISHED: dict[str, dict[str, Any]] = json.loads(
    resources.files("nerm.datasets").joinpath("published.json").read_text(encoding="utf-8")
)


def homes(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders to look in: ``data_home`` when given, then the one that NERM_DATA names."""
    named = [data_home, os.environ.get("NERM_DATA")]
    return [Path(home).expanduser() for home in named if home]


def find(name: str, file: str, data_home: str | os.PathLike[str] | None) -> Path | None:
    """Return where the file is, in ``<home>/<name>/`` or ``<home>/``, plain or with ``.gz``, or None."""
    folders = [folder for home in homes(data_home) for folder in (home / name, home)]
    candidates = [folder / one for folder in folders for one in (file, f"{file}.gz")]
    return next((path for path in candidates if path.is_file()), None)


def read_bytes(path: Path) -> bytes:
    """Return the content, unzipped where the file is gzip'ed."""
    content = path.read_bytes()
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        got = f"one that ends early or is damaged ({error})"
        raise InvalidInputError(
            f"{path} must be a whole gzip file", got, "Copy or download it again"
        ) from None


def read_verified(path: Path, sha256: str) -> str:
    """Return the text of a published file after comparing its checksum."""
    content = read_bytes(path)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        must = f"{path} must be the published file (sha256 {sha256[:12]}… unzipped)"
        do = "The file is truncated or changed: download it again, or remove it to load from OpenML"
        raise InvalidInputError(must, f"sha256 {found[:12]}… over {len(content)} bytes", do)
    return content.decode("utf-8")


def digest(frame: Any) -> str:
    """Return a checksum of a table's names and values that does not depend on the pandas version."""
    check = hashlib.sha256()
    for column in frame.columns:
        missing = frame[column].isna().to_numpy()
        text = frame[column].astype(object).to_numpy()
        check.update(
            "\n".join(
                [str(column), *("?" if m else str(v) for v, m in zip(text, missing, strict=True))]
            ).encode()
        )
        check.update(b"\0")
    return check.hexdigest()


def fetch_openml_frame(name: str, data_id: int, file: str, data_home: str | os.PathLike[str] | None) -> Any:
    """Return OpenML's frame, downloaded once and then cached by scikit-learn."""
    from http.client import HTTPException

    from sklearn.datasets import fetch_openml

    try:
        return fetch_openml(data_id=data_id, as_frame=True, data_home=data_home and str(data_home)).frame
    except (OSError, HTTPException, ValueError) as error:  # OpenML's own errors are ValueErrors
        looked = ", ".join(str(home) for home in homes(data_home)) or "no folder (NERM_DATA is not set)"
        raise DataUnavailableError(
            f"{name!r} must be on this machine or within reach of OpenML (id {data_id})",
            f"no {file} or {file}.gz in {looked}, and OpenML answered {type(error).__name__}: {error}",
            f"Go online, or put the UCI file {file} in a folder and name it in NERM_DATA or data_home",
        ) from None  # the sentence says what the network said
