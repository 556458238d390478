Feature: Items of OpenAI's Responses API
  Codex and the OpenAI Agents SDK send one reply of the model as several items: reasoning, messages
  and calls. A policy decides on these items as it does on the messages of the other APIs.

  Background:
    Given the messages have the OpenAI Responses shape

  Scenario: Old results of a Codex session are offloaded
    Given the policy
      """
      apiVersion: policyctx/v1
      name: keep-five
      min_tokens: 800
      items: {tool_result: {offload: true}}
      steps:
        - {name: retire, do: offload, select: {types: [tool_result], keep_recent: {items: 5, per: all}}}
      """
    And a user message that reads "Fix the test."
    And the messages:
      | type     | id | tool  | size         | text           |
      | thinking |    |       |              | I run it.      |
      | call     | a  | shell |              |                |
      | result   | a  | shell | 3,000 tokens |                |
      | thinking |    |       |              | I read it too. |
    And 6 shell results of 3,000 tokens
    And an assistant message that reads "Done."
    When the policy is applied
    Then 2 results are offloaded
    And the result "a" is offloaded
    And the last result is kept because "recent"
    And the file of every offloaded item holds its original content
    And every thinking block is the same object as before
    And unchanged messages are the same objects
    And the input is not changed

  Scenario: Of a Codex history only the output changes
    Given the policy
      """
      apiVersion: policyctx/v1
      name: outputs
      min_chars: 20
      items: {tool_result: {offload: true}}
      placeholder: "[{tool_name} {relative_path}]"
      steps: [{name: outputs, do: offload, select: {types: [tool_result]}}]
      """
    And the messages
      """
      [
       {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix the test."}]},
       {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABo=="},
       {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "shell", "arguments": "{\"command\":[\"pytest\"]}"},
       {"type": "custom_tool_call", "id": "ct_1", "call_id": "b", "name": "apply_patch", "input": "*** Begin Patch\n*** End Patch"},
       {"type": "function_call_output", "call_id": "a", "output": "FAILED test_a.py::test_one - assert 1 == 2"},
       {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "Success. Updated the following files: tests/test_a.py."}]},
       {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
      ]
      """
    When the policy is applied
    Then the messages are
      """
      [
       {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix the test."}]},
       {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABo=="},
       {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "shell", "arguments": "{\"command\":[\"pytest\"]}"},
       {"type": "custom_tool_call", "id": "ct_1", "call_id": "b", "name": "apply_patch", "input": "*** Begin Patch\n*** End Patch"},
       {"type": "function_call_output", "call_id": "a", "output": "[shell ./tool_result/shell/a.md]"},
       {"type": "custom_tool_call_output", "call_id": "b", "output": "[apply_patch ./tool_result/apply_patch/b.md]"},
       {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
      ]
      """

  Scenario: A result is offloaded as it arrives
    Given the policy "tool-direct-offload"
    When a result "a" of 1500 characters arrives from shell
    Then the result "a" is newly offloaded
    And the content of the result "a" is a string

  Scenario: A dropped result leaves with its call and the reasoning before it
    Given the policy
      """
      apiVersion: policyctx/v1
      name: dropping
      min_chars: 0
      items: {tool_result: {offload: true}}
      steps: [{name: forget, do: drop, select: {types: [tool_result], keep_recent: 1}}]
      """
    And the messages:
      | type              | id | tool  | text          |
      | user_message      |    |       | Fix the test. |
      | thinking          |    |       | I run it.     |
      | call              | a  | shell |               |
      | result            | a  | shell | failed        |
      | user_message      |    |       | Once more.    |
      | thinking          |    |       | I run it too. |
      | call              | b  | shell |               |
      | result            | b  | shell | passed        |
      | assistant_message |    |       | Done.         |
    When the policy is applied
    Then the result "a" is dropped
    And the call "a" is dropped
    And the first thinking block is dropped
    And the last thinking block is kept
    And the context has 6 messages

  Scenario: Reasoning stays with what it led to
    Given the policy
      """
      apiVersion: policyctx/v1
      name: dropping
      min_chars: 0
      steps: [{name: forget, do: drop, select: {types: [thinking]}}]
      """
    And the messages:
      | type              | id | tool  | text          |
      | user_message      |    |       | Fix the test. |
      | thinking          |    |       | I run it.     |
      | call              | a  | shell |               |
      | call              | b  | shell |               |
      | result            | a  | shell | failed        |
      | result            | b  | shell | passed        |
      | user_message      |    |       | Thanks.       |
    When the policy is applied
    Then the thinking block is kept because "reasoning stays with what it led to"
    And the same list is returned

  Scenario: A call without an output stays
    Given the policy
      """
      apiVersion: policyctx/v1
      name: dropping
      min_chars: 0
      items: {tool_result: {offload: true}, tool_call: {offload: true}}
      steps: [{name: forget, do: drop, select: {types: [tool_result, tool_call]}}]
      """
    And the messages:
      | type         | id | tool  | text          |
      | user_message |    |       | Fix the test. |
      | thinking     |    |       | I run it.     |
      | call         | a  | shell |               |
      | call         | b  | shell |               |
      | result       | b  | shell | passed        |
    When the policy is applied
    Then the call "a" is kept because "answer_pending"
    And the result "b" is kept because "answer_pending"
    And the same list is returned

  Scenario: A compaction keeps what no summary can tell
    Given the policy
      """
      apiVersion: policyctx/v1
      name: compacting
      steps:
        - name: summarise
          do: compact
          when: {messages: {over: 5}}
          compaction: {keep_recent: {messages: 1}}
      """
    And the messages
      """
      [
       {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix the test."}]},
       {"type": "compaction", "encrypted_content": "gAAAAABo=="},
       {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABp=="},
       {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "docs", "tools": []},
       {"type": "function_call", "call_id": "a", "name": "shell", "arguments": "{}"},
       {"type": "function_call_output", "call_id": "a", "output": "passed"},
       {"type": "item_reference", "id": "msg_1"},
       {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And the next one."}]}
      ]
      """
    When the policy is applied
    Then messages 2 to 4 are the same objects as before
    And message 7 is the same object as before
    And the result "a" is summarised
    And the call "a" is summarised
    And the context has 7 messages
