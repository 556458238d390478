Feature: Lists that mix shapes
  The shape is found for each message. A list may hold messages of several APIs, for example since a
  framework converts only some of them.

  Background:
    Given the policy
      """
      apiVersion: policyctx/v1
      name: results
      min_chars: 100
      items: {tool_result: {offload: true}}
      placeholder: "[{relative_path}]"
      steps: [{name: results, do: offload, select: {types: [tool_result]}}]
      """

  Scenario: Results of every shape are offloaded
    Given a session with a Bash result of 200 characters
    And the messages have the OpenAI shape
    And 2 parallel Read results of 200 characters
    And the messages have the OpenAI Responses shape
    And 2 parallel Grep results of 200 characters
    And an assistant message that reads "Done."
    When the policy is applied
    Then 5 results are offloaded
    And the context has 11 messages
    And the file of every offloaded item holds its original content
    And unchanged messages are the same objects

  Scenario: A result may have another shape than its call
    Given the messages
      """
      [
       {"role": "user", "content": "Run it."},
       {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {}}]},
       {"type": "function_call_output", "call_id": "a", "output": "This output is so long that it leaves the context for a file, where the agent can read it again later."},
       {"type": "function_call", "call_id": "b", "name": "Read", "arguments": "{}"},
       {"role": "tool", "tool_call_id": "b", "content": "This output is so long that it leaves the context for a file, where the agent can read it again later."}
      ]
      """
    When the policy is applied
    Then the messages are
      """
      [
       {"role": "user", "content": "Run it."},
       {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {}}]},
       {"type": "function_call_output", "call_id": "a", "output": "[./tool_result/Bash/a.md]"},
       {"type": "function_call", "call_id": "b", "name": "Read", "arguments": "{}"},
       {"role": "tool", "tool_call_id": "b", "content": "[./tool_result/Read/b.md]"}
      ]
      """

  Scenario: A message of the role tool may hold blocks beside items
    Given the messages
      """
      [
       {"role": "user", "content": "Run it."},
       {"type": "function_call", "call_id": "a", "name": "Bash", "arguments": "{}"},
       {"role": "tool", "content": [
        {"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": "This output is so long that it leaves the context for a file, where the agent can read it again later."}]}
      ]
      """
    When the policy is applied
    Then the messages are
      """
      [
       {"role": "user", "content": "Run it."},
       {"type": "function_call", "call_id": "a", "name": "Bash", "arguments": "{}"},
       {"role": "tool", "content": [
        {"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": "[./tool_result/Bash/a.md]"}]}
      ]
      """

  Scenario: An easy message stays with the reasoning that led to it
    Given the policy
      """
      apiVersion: policyctx/v1
      name: dropping
      min_chars: 0
      steps: [{name: forget, do: drop, select: {types: [thinking]}}]
      """
    And the messages
      """
      [
       {"role": "user", "content": "Run it."},
       {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABo=="},
       {"role": "assistant", "content": "I run it."},
       {"type": "function_call", "call_id": "a", "name": "Bash", "arguments": "{}"},
       {"type": "function_call_output", "call_id": "a", "output": "passed"},
       {"role": "user", "content": "Thanks."}
      ]
      """
    When the policy is applied
    Then the same list is returned
