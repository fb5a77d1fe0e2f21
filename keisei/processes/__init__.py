"""Processes and machines: shared memory, lines to processes, Ray, pools; no game, no learning."""
