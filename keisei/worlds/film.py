"""An episode as a file: an animated GIF, or an MP4 if the program `ffmpeg` is there to write it."""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keisei.errors import KeiseiError
from keisei.files import replace_file

if TYPE_CHECKING:
    from PIL.Image import Image

FRAMES_PER_S = 7
ENCODING_TIMEOUT = 600.0


def check_film(path: Path) -> None:
    """Refuse what could not be written, before an episode is played for it.

    >>> check_film(Path("hunt.gif"))
    """
    if path.suffix not in (".gif", ".mp4"):
        raise KeiseiError(f"{path}: a film's name must end in .gif or .mp4")
    if path.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise KeiseiError(f"{path}: an MP4 needs the program ffmpeg; install it, or write a .gif")


def write_film(frames: Sequence[Image], path: Path) -> None:
    """Write pictures of one size as a film; the name's ending says of which kind."""
    check_film(path)
    replace_file(path, _gif(frames) if path.suffix == ".gif" else _mp4(frames, path))


def _gif(frames: Sequence[Image]) -> memoryview:
    data, (first, *others) = io.BytesIO(), frames
    duration = 1000 // FRAMES_PER_S
    first.save(data, "GIF", save_all=True, append_images=others, duration=duration, loop=0)
    return data.getbuffer()


def _mp4(frames: Sequence[Image], path: Path) -> bytes:
    """Hand the bare pixels to ffmpeg, a program of its own."""
    width, height = frames[0].size
    before = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
    # Players want this kind of pixels, and for that even sizes.
    after = ["-pix_fmt", "yuv420p", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-f", "mp4"]
    command = ["ffmpeg", "-loglevel", "error", *before, "-r", str(FRAMES_PER_S), "-i", "-"]
    try:
        with tempfile.TemporaryDirectory() as folder:
            film = Path(folder) / "film"
            subprocess.run(
                [*command, *after, str(film)],
                input=b"".join(frame.convert("RGB").tobytes() for frame in frames),
                stderr=subprocess.PIPE,
                check=True,
                timeout=ENCODING_TIMEOUT,
            )
            return film.read_bytes()
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip() or f"exit code {error.returncode}"
        raise KeiseiError(f"{path}: ffmpeg failed: {said}") from None
    except subprocess.TimeoutExpired:
        raise KeiseiError(f"{path}: ffmpeg took longer than {ENCODING_TIMEOUT:.0f} s") from None
