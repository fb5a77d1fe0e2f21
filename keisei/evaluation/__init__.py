"""Who is stronger: players and matches."""
