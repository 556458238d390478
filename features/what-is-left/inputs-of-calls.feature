Feature: What is left of the input of a call whose result leaves
  `with_input` names the tools, and says what is left: the short strings, or nothing at all.

  Background:
    Given the messages
      """
      [
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "Write", "input": {"path": "a.py", "lines": [1, 2]}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": "written, and here is the file again"}
        ]}
      ]
      """

  Scenario Outline: A short input is emptied where the policy says so
    Given the policy
      """
      items: {tool_result: {offload: true}}
      placeholder: '[this is gone]'
      steps:
        - {name: clear, do: clear, select: {types: [tool_result], with_input: <with_input>}}
      """
    When the policy is applied
    Then the result "a" is cleared
    And the call "a" is <state>

    Examples:
      | with_input                         | state                                                                   |
      | true                               | kept                                                                    |
      | {leave: short_strings}             | kept                                                                    |
      | {leave: empty}                     | cleared by the rule "steps.clear.select.with_input"                     |
      | {tools: "Wr*", leave: empty}       | cleared because "its input is emptied with its result"                  |
      | {tools: [Edit, Move], leave: empty} | kept                                                                    |

  Scenario: An input that is emptied is saved before, and stays empty
    Given the policy
      """
      items: {tool_result: {offload: true}}
      placeholder: '[this is gone]'
      steps:
        - name: offload
          do: offload
          select: {types: [tool_result], with_input: {tools: "*", leave: empty}}
      """
    When the policy is applied
    Then the messages are
      """
      [
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "Write", "input": {}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": "[this is gone]"}
        ]}
      ]
      """
    And the file "tool_call/Write/a.md" holds the original content of the call "a"
    When the process restarts
    And the policy is applied again
    Then the prefix is unchanged up to message 2
    And the call "a" is offloaded

  Scenario: An input of a call that a model was sent already is emptied when the result arrives
    Given the policy
      """
      items: {tool_result: {offload: true}}
      placeholder: '[this is gone]'
      steps:
        - name: offload
          on: arrival
          do: offload
          select: {types: [tool_result], with_input: {tools: "*", leave: empty}}
      """
    And no messages
    And the messages
      """
      [
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "Write", "input": {"path": "a.py", "lines": [1, 2]}}
        ]}
      ]
      """
    When the policy is applied
    And these results arrive
      """
      {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "written, and here is the file again"}
      ]}
      """
    And the policy is applied
    Then the messages are
      """
      [
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "Write", "input": {}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": "[this is gone]"}
        ]}
      ]
      """
