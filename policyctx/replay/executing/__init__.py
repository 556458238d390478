"""Who does the work of a replay: this process, several, or the workers of a cluster."""
