"""Many files and large files."""

from __future__ import annotations

import random
import tracemalloc

import pytest


@pytest.mark.heavy
def test_ten_thousand_files(trial):
    for directory in range(100):
        for number in range(100):
            trial.write(f"d{directory}/f{number}", f"{directory} {number}\n")
    trial.baseline()
    for directory in range(100):
        trial.write(f"d{directory}/f7", "edited\n")
        (trial.workspace / f"d{directory}" / "f8").unlink()
    text = trial.diff()
    assert text.count("\n+edited\n") == 100
    assert text.count("deleted file mode") == 100
    assert text.count("diff --git") == 200


@pytest.mark.heavy
def test_a_file_of_200_mib_in_bounded_memory(trial):
    path = trial.workspace / "big.bin"
    with path.open("wb") as file:
        file.truncate(200 << 20)
    tracemalloc.start()
    try:
        trial.baseline()
        with path.open("r+b") as file:
            file.seek(100 << 20)
            file.write(b"changed")
        capture = trial.snapshots.capture()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "Binary files a/big.bin and b/big.bin differ" in capture.diff.text
    assert peak < 16 << 20


def test_a_patch_is_streamed_into_its_file(trial, tmp_path):
    trial.baseline()
    trial.write("big.bin", random.Random(1).randbytes(24 << 20))
    tracemalloc.start()
    try:
        size = trial.snapshots.patch(trial.before, trial.snapshots.final(), tmp_path / "patch")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size == (tmp_path / "patch").stat().st_size > 24 << 20
    assert peak < 16 << 20


def test_a_diff_of_many_mebibytes_is_decoded_in_pieces(trial):
    trial.baseline()
    trial.write("big.txt", "試験の行\n" * (8 << 16))
    assert trial.diff().count("\n+試験の行") == 8 << 16
