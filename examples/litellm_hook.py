"""The policy of LiteLLM's proxy, which its config.yaml names: `callbacks: litellm_hook.policy`."""

from policyctx.integrations.litellm import PolicyHook

policy = PolicyHook("coding-agent")
