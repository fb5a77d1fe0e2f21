"""The command `keisei`, which is also `python -m keisei`."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C is not an error, even while it loads."""
    try:
        from keisei.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
