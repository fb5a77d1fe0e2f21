"""A process for tests: counts the files that it was given, and ends."""

import os
import sys


def main():
    (option,) = [word for word in sys.argv[1:] if word.startswith("--files=")]
    files = [int(number) for number in option.removeprefix("--files=").split(",")]
    for file in files:
        os.fstat(file)
    sys.exit(len(set(files)) % 256)
