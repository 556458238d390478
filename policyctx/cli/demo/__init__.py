"""`policyctx demo`: a scripted agent with real tools, and a policy at work before every call."""

from policyctx.cli.demo.command import demo

__all__ = ["demo"]
