from __future__ import annotations

import os

import pytest

from nerm.files import write_atomically


def test_the_old_file_stands_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with write_atomically(path, "w", encoding="utf-8", newline="") as file:
        file.write("ναύτης\r\n")
        assert path.read_text() == "old"
    assert path.read_bytes() == "ναύτης\r\n".encode()
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
def test_an_error_leaves_the_old_file_and_nothing_beside_it(tmp_path, failure):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def interrupted():
        with write_atomically(path) as file:
            file.write(b"half")
            raise failure

    with pytest.raises(failure):
        interrupted()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_move_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"), write_atomically(tmp_path / "a") as file:
        file.write(b"x")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError), write_atomically(tmp_path / "no" / "a") as file:
        file.write(b"x")
