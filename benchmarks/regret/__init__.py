"""Labels of regret: which removed items a person would say that the agent needed."""
