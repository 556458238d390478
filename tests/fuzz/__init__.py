"""Random sessions that send their list in changing forms; `python -m tests.fuzz --help`."""
