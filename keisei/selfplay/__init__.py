"""Self-play: shards of games, their opponents, and the plan of who plays next."""
