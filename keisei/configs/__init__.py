"""Settings that come with Keisei, to be taken by name: `keisei train -c quick`."""

from pathlib import Path

NAMES = ("quick", "hour", "night")  # from the shortest to the longest
FOLDER = Path(__file__).parent
