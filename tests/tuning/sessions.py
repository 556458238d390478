"""Made-up recordings of which the best setting is known."""
