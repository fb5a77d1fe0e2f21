"""Settings that come with Keisei, to be taken by name: `keisei train -c quick`."""

from pathlib import Path

NAMES = ("quick", "hour", "night")  # from the shortest to the longest
FOLDER = Path(__file__).parent

# Of worlds: `keisei worlds train -c cleanup-alone`.
WORLD_NAMES = ("cleanup-alone", "cleanup-selfish", "cleanup-averse", "cleanup-shared", "spread")
WORLD_FOLDER = FOLDER / "worlds"


def find(name: Path | str, names: tuple[str, ...], folder: Path) -> Path | None:
    """The file of settings with this name, or a user's own file as it is; None: there is neither.

    >>> find("quick", NAMES, FOLDER).name, find("mine.yaml", NAMES, FOLDER).name
    ('quick.yaml', 'mine.yaml')
    """
    file = Path(name)
    if str(name) in names:
        return folder / f"{name}.yaml"
    missing = file.name == str(name) and not file.suffix and not file.exists()
    return None if missing else file
