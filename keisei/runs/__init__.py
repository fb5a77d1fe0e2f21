"""A run's folder: settings, checkpoints, metrics, a trace, and how it is stopped."""
