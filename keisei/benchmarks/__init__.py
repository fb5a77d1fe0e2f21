"""What `keisei benchmark` measures. Each compares rates within one run, because machines differ."""
