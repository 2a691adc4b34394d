"""Read PNG and JPEG files as arrays of equal size and equal number of colour channels."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.numpy_files import check_unpacked

if TYPE_CHECKING:
    from PIL import Image

Colour: TypeAlias = Literal["auto", "grey", "rgb"]
"""Colours in which images are read: "auto" is rgb if any pixel has colour, and grey otherwise."""

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg")  # endings of image files


@dataclass(frozen=True)
class ImageForm:
    """Size and colours to which images are converted."""

    size: tuple[int, int] | None = None  # height and width; None: not resized
    colour: Colour = "auto"

    @classmethod
    def asked(cls, size: int | Sequence[int] | str | None, colour: Colour = "auto") -> ImageForm:
        """Return the form for a size: a number, (height, width), or text such as "32" or "24x32"."""
        sides: Any = size
        if isinstance(size, str):
            text = re.fullmatch(r"(\d{1,5})(?:x(\d{1,5}))?", size)
            sides = [int(side) for side in text.groups() if side] if text else [0]
        if isinstance(sides, int):
            sides = [sides]
        if sides is not None:
            sides = (sides[0], sides[-1])
            if not all(isinstance(side, int) and 1 <= side <= 10_000 for side in sides):
                raise InvalidParameter(
                    f"image size is {size!r}; allowed: a number of pixels from 1 to 10000, as 32, or "
                    "height and width, as 24x32."
                )
        return cls(sides, colour)

    @classmethod
    def of_shape(cls, shape: tuple[int, ...] | None) -> ImageForm:
        """Return the form to which a fitted model's images were converted."""
        if shape is None:
            return cls()
        return cls((shape[0], shape[1]), "grey" if len(shape) == 2 else "rgb")


def visible(folder: Path) -> list[Path]:
    """List a folder's files and subfolders by name, without hidden entries."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def is_image(name: str) -> bool:
    """Return True if the file name has the ending of an image."""
    return name.lower().endswith(IMAGE_ENDINGS)


def image_paths(folder: Path) -> list[Path]:
    """List the images in a folder by name."""
    return [path for path in visible(folder) if is_image(path.name) and path.is_file()]


def read_images(
    folder: Path, paths: Sequence[Path], form: ImageForm
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Read images of one size, (n, height, width) or (n, height, width, 3); describe conversions."""
    images: list[np.ndarray] = []
    faults: list[str] = []
    sizes: dict[tuple[int, int], Path] = {}
    transparent = resized = 0
    for path in paths:
        name = str(path.relative_to(folder))
        try:
            image, size, clear = _opened(path, form)
        except (OSError, ValueError, SyntaxError, Warning, EOFError) as error:
            faults.append(f"{name} ({_reason(error)})")
            continue
        transparent += clear
        resized += form.size not in (None, size)
        if form.size is None and sizes.setdefault(size, path) is path and len(sizes) > 1:
            other, first = next(iter(sizes.items()))
            raise InvalidData(
                f"{folder} contains images of mixed size: {first.relative_to(folder)} has "
                f"{_sides(other)} pixels, {name} has {_sides(size)}; allowed: one size. Crop them, or "
                f"resize them with --image-size {other[0]}x{other[1]} (image_size=)."
            )
        if not images:
            # number of bytes: one per pixel as read, and four as float32
            check_unpacked(5.0 * image.size * len(paths), str(folder))
        images.append(image)
    if faults:
        many = f"{len(faults)} of {len(paths)} images in {folder} cannot be read"
        shown = "; ".join(faults[:5]) + (f"; and {len(faults) - 5} more" if len(faults) > 5 else "")
        raise InvalidData(f"{many}: {shown}. Remove or replace them.")
    coloured = sum(image.ndim == 3 for image in images)
    if coloured or form.colour == "rgb":
        images = [
            image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2) for image in images
        ]
    return np.stack(images), _notes(len(images), form, coloured, transparent, resized)


def _notes(
    count: int, form: ImageForm, coloured: int, transparent: int, resized: int
) -> tuple[str, ...]:
    notes = []
    if resized and form.size is not None:
        notes.append(f"{resized} of {count} images were resized to {_sides(form.size)} pixels")
    if coloured and form.colour == "auto":
        notes.append(
            f"{coloured} of {count} images have colour, so all are read as red, green and blue; "
            "--colour grey reads them as grey"
        )
    if transparent:
        notes.append(f"{transparent} of {count} images are transparent and got a white background")
    return tuple(notes)


def _opened(path: Path, form: ImageForm) -> tuple[np.ndarray, tuple[int, int], bool]:
    """Return pixels from 0 to 255, height and width in the file, and True for a transparent image."""
    from PIL import Image, ImageOps

    with warnings.catch_warnings():
        # Pillow's warning about too many pixels becomes an error: a small file may unpack to billions.
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            opened = Image.open(path, formats=("PNG", "JPEG"))
        except Image.DecompressionBombError as error:
            raise ValueError(str(error)) from error
        with opened:
            # The image is rotated by the camera orientation stored in the file.
            image: Image.Image = ImageOps.exif_transpose(opened)
            image.load()
    size = (image.height, image.width)
    clear = "A" in image.getbands() or "transparency" in image.info
    if clear:
        layer = image.convert("RGBA")
        clear = bool(np.asarray(layer)[..., 3].min() < 255)
        image = Image.new("RGBA", layer.size, "white")
        image.alpha_composite(layer)
    image = _coloured_or_grey(image, form.colour)
    if form.size is not None:
        # bilinear weights over the area that a new pixel covers
        image = image.resize((form.size[1], form.size[0]), Image.Resampling.BILINEAR)
    array = np.asarray(image)
    if form.colour == "auto" and array.ndim == 3 and not np.any(array - array[..., :1]):
        array = array[..., 0]
    return array, size, clear


def _coloured_or_grey(image: Image.Image, colour: Colour) -> Image.Image:
    """Convert an image to one channel (grey) or three channels (colour)."""
    from PIL import Image

    if image.mode.startswith("I"):  # Pillow's own conversion would clip 16-bit pixels at 255.
        return Image.fromarray(np.asarray(image, dtype=np.float32) / np.float32(257))
    if colour == "grey" or image.mode in ("L", "1"):
        return image.convert("L")  # grey value 0.299 red + 0.587 green + 0.114 blue
    return image.convert("RGB")


def _reason(error: BaseException) -> str:
    """Return the reason why an image cannot be read."""
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return "it is damaged, or neither PNG nor JPEG"
    return " ".join((getattr(error, "strerror", None) or str(error)).split())[:100]


def _sides(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"
