"""A process for tests: waits until it is ended."""

import signal


def main():
    signal.pause()
