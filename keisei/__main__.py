"""`python -m keisei` is the same as `keisei`."""

from keisei.cli import main

main()
