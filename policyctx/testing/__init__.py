"""The pytest plugin and the step library with which users test their own policies."""
