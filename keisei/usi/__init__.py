"""USI, the protocol of Shogi engines: Keisei as an engine, and a client for others."""
