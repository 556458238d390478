"""What a later statement does to an earlier one, judged on labelled pairs."""
