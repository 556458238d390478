"""Other libraries against our policies of them: the time of both, in turns, in one process."""
