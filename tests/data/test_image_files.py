"""Folders of PNG and JPEG files: pixels as drawn, and one line for each error."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from solvable.data import load, load_new
from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded

DIGITS = load_digits()
GREY = (DIGITS.images * 15.9).astype(np.uint8)


def write_digits(folder: Path, count: int = 40, *, ending: str = "png", mode: str = "L") -> Path:
    for i in range(count):
        sub = folder / ("odd" if DIGITS.target[i] % 2 else "even")
        sub.mkdir(parents=True, exist_ok=True)
        Image.fromarray(GREY[i]).convert(mode).save(sub / f"{i:03d}.{ending}")
    return folder


def one(folder: Path, image: Image.Image, name: str = "a.png", **options: object) -> Path:
    """Folder of two classes, each with two copies of an image."""
    for label in ("a", "b"):
        (folder / label).mkdir(parents=True, exist_ok=True)
        for path in (folder / label / name, folder / label / f"z{name}"):
            image.save(path, **options)
    return folder


@pytest.mark.parametrize("mode", ["L", "RGB", "P", "RGBA"])
def test_grey_images_are_read_as_they_are_in_any_mode(tmp_path: Path, mode: str) -> None:
    data = load(write_digits(tmp_path / "digits", mode=mode))
    assert data.image_shape == (8, 8)
    assert data.class_labels == ("even", "odd")
    # By class, then by name.
    order = np.argsort(DIGITS.target[:40] % 2, kind="stable")
    np.testing.assert_array_equal(data.X, GREY[order].reshape(40, 64))
    names = [f"{'odd' if DIGITS.target[i] % 2 else 'even'}/{i:03d}.png" for i in order]
    assert data.row_names is not None
    assert data.row_names.tolist() == names


def test_jpeg_is_near_and_any_case_counts(tmp_path: Path) -> None:
    data = load(write_digits(tmp_path, ending="JPG"))
    order = np.argsort(DIGITS.target[:40] % 2, kind="stable")
    assert data.image_shape == (8, 8)
    assert np.abs(data.X - GREY[order].reshape(40, 64)).mean() < 15


def test_colours_are_kept_or_made_grey(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
    one(tmp_path, Image.fromarray(pixels))
    Image.fromarray(pixels[..., 0]).save(tmp_path / "a" / "grey.png")
    kept = load(tmp_path)
    assert kept.image_shape == (5, 4, 3)
    np.testing.assert_array_equal(kept.X[0], pixels.ravel())
    np.testing.assert_array_equal(kept.X[1].reshape(5, 4, 3)[..., 2], pixels[..., 0])
    assert any("4 of 5 images have colour" in line for line in kept.treatments)
    grey = load(tmp_path, colour="grey")
    assert grey.image_shape == (5, 4)
    weighted = pixels @ np.array([0.299, 0.587, 0.114])
    np.testing.assert_allclose(grey.X[0].reshape(5, 4), weighted, atol=1)


def test_sixteen_bits_transparency_and_turned_cameras(tmp_path: Path) -> None:
    deep = np.array([[0, 257, 65535], [30000, 514, 128]], dtype=np.uint16)
    data = load(one(tmp_path / "deep", Image.fromarray(deep)))
    np.testing.assert_allclose(data.X[0], deep.ravel() / 257, rtol=1e-6)
    clear = np.zeros((2, 2, 4), dtype=np.uint8)
    clear[0, 0, 3] = 255
    data = load(one(tmp_path / "clear", Image.fromarray(clear)))
    np.testing.assert_array_equal(data.X[0], [0, 255, 255, 255])
    assert any("4 of 4 images are transparent" in line for line in data.treatments)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter to the right
    flat = np.zeros((16, 32), dtype=np.uint8)
    flat[:, 16:] = 255
    data = load(one(tmp_path / "turned", Image.fromarray(flat), "a.jpg", exif=exif))
    assert data.image_shape == (32, 16)
    assert data.X[0].reshape(32, 16)[0].max() < 20


def test_resized_by_the_area_of_each_pixel(tmp_path: Path) -> None:
    # A smooth picture does not change with its size.
    def picture(height: int, width: int) -> Image.Image:
        y, x = np.mgrid[:height, :width]
        wave = 120 + 60 * np.sin((x + 0.5) / width * 3) + 60 * np.cos((y + 0.5) / height * 2)
        return Image.fromarray(wave.astype(np.uint8))

    one(tmp_path, picture(60, 90))
    picture(45, 30).save(tmp_path / "a" / "b.png")
    with pytest.raises(
        InvalidData, match=r"a/a.png has 60 x 90 pixels, a/b.png has 45 x 30; .*60x90"
    ):
        load(tmp_path)
    data = load(tmp_path, image_size="12x10")
    expected = np.asarray(picture(12, 10), dtype=float).ravel()
    for row in data.X:
        assert np.abs(row - expected)[11:-11].max() < 6
    assert "5 of 5 images were resized to 12 x 10 pixels" in data.treatments
    np.testing.assert_array_equal(data.X, load(tmp_path, image_size=(12, 10)).X)
    assert load(tmp_path, image_size=7).image_shape == (7, 7)


def test_new_images_are_made_like_those_of_the_model(tmp_path: Path) -> None:
    data = load(write_digits(tmp_path / "digits"), image_size=6)
    new = tmp_path / "new"
    new.mkdir()
    Image.fromarray(GREY[0]).convert("RGB").save(new / "b.png")
    Image.fromarray(GREY[2]).resize((6, 6)).save(new / "a.png")
    rows = load_new(new, data.preparation)
    np.testing.assert_array_equal(rows.X[1], data.X[0])
    assert rows.row_names is not None
    assert rows.row_names.tolist() == ["a.png", "b.png"]
    assert "1 of 2 images were resized to 6 x 6 pixels" in rows.treatments
    np.testing.assert_array_equal(load_new(new / "b.png", data.preparation).X, rows.X[1:])
    assert load_new(tmp_path / "digits", data.preparation).labelled.all()


def test_hidden_files_and_other_files_are_no_images(tmp_path: Path) -> None:
    write_digits(tmp_path)
    (tmp_path / "even" / "._000.png").write_bytes(b"resource fork")
    (tmp_path / ".checkpoints").mkdir()
    (tmp_path / ".checkpoints" / "a.png").write_bytes(b"no image")
    (tmp_path / "even" / "Thumbs.db").write_bytes(b"")
    (tmp_path / "readme.txt").write_text("digits")
    (tmp_path / "empty").mkdir()
    data = load(tmp_path)
    assert data.n_samples == 40
    left = next(line for line in data.treatments if line.startswith("left out"))
    assert all(name in left for name in ("empty", "readme.txt", "even/Thumbs.db"))
    assert "000" not in left


def test_damaged_files_are_named_in_one_line(tmp_path: Path) -> None:
    write_digits(tmp_path)
    whole = (tmp_path / "even" / "000.png").read_bytes()
    (tmp_path / "even" / "000.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "odd" / "001.png").write_text("GIF89a")
    (tmp_path / "odd" / "zero.jpg").write_bytes(b"")
    with pytest.raises(InvalidData, match=r"3 of 41 images in .* cannot be read") as refused:
        load(tmp_path)
    said = str(refused.value)
    assert "\n" not in said
    assert "even/000.png" in said
    assert "odd/001.png (it is damaged, or neither PNG nor JPEG" in said


def test_no_flipped_byte_is_a_traceback(tmp_path: Path) -> None:
    one(tmp_path, Image.fromarray(GREY[7]))
    path = tmp_path / "a" / "a.png"
    whole = path.read_bytes()
    rng = np.random.default_rng(3)
    for _ in range(150):
        spoilt = bytearray(whole)
        spoilt[rng.integers(len(whole))] = rng.integers(256)
        path.write_bytes(bytes(spoilt))
        with suppress(InvalidData, MemoryLimitExceeded):
            load(tmp_path)


def bomb(width: int, height: int) -> bytes:
    """PNG with a large size in its header and almost no content."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        sum_of = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + sum_of

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(1000), 9)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", pixels), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("sides", [(11_000, 11_000), (60_000, 60_000)])
def test_a_few_bytes_that_claim_billions_of_pixels(tmp_path: Path, sides: tuple[int, int]) -> None:
    one(tmp_path, Image.fromarray(GREY[0]))
    (tmp_path / "a" / "bomb.png").write_bytes(bomb(*sides))
    with pytest.raises(InvalidData, match=r"a/bomb.png \(Image size"):
        load(tmp_path, image_size=8)


def test_more_than_fits_into_memory_is_refused_after_one_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from solvable import numpy_files

    one(tmp_path, Image.fromarray(np.zeros((1200, 1200), dtype=np.uint8)))
    monkeypatch.setattr(numpy_files, "available_bytes", lambda: 2e7)
    with pytest.raises(MemoryLimitExceeded, match="unpacks to"):
        load(tmp_path)


def test_options_out_of_place(tmp_path: Path) -> None:
    for size in ("0", "8x", "-3", "a", 0, (3, 0), "20000"):
        with pytest.raises(InvalidParameter, match="image size is"):
            load(tmp_path, image_size=size)
    with pytest.raises(InvalidParameter, match="holds no PNG or JPEG"):
        load("digits", image_size=4)
    with pytest.raises(InvalidData, match="allowed: a folder with a sub-folder"):
        load(one(tmp_path, Image.fromarray(GREY[0])) / "a" / "a.png")


def test_images_one_level_deeper_are_pointed_at(tmp_path: Path) -> None:
    write_digits(tmp_path / "train")
    with pytest.raises(InvalidData, match=r"are in deeper folders: try .*train"):
        load(tmp_path)
