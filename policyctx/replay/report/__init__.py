"""The report: one page of HTML that shows what a policy would have done to recorded sessions."""
