"""Training: runs, checkpoints, metrics and the loop that drives them."""
