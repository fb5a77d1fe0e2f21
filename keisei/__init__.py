"""Keisei trains agents that play, by self-play, with every core and machine you have."""

__version__ = "0.1.0.dev0"
