"""The page of `keisei serve`: runs to watch, games to replay, a board to play on."""
