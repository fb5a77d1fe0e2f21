"""Learning: networks, experience and PPO. Nothing here knows of processes or of the rules."""
