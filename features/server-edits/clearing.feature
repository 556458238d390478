Feature: A policy that was imported does what the server was asked to do
  `policyctx import anthropic` makes the policy `imported.yaml` of the edits in
  `context_management.json`: old tool results are cleared from 30,000 tokens on, if that frees 5,000,
  and the thinking of all but two turns is removed.

  Background:
    Given the policy "imported.yaml"
    And the summarizer answers "The port is moved."

  Scenario Outline: Results are cleared once the list is over the trigger
    Given a session with 5 Bash results of <size> tokens
    When the policy is applied
    Then <count> results are cleared

    Examples:
      | size  | count |
      | 5,000 | 0     |
      | 9,000 | 2     |

  Scenario: The three newest stay, of all tools together
    Given a session with 2 Bash results of 9,000 tokens
    And a result "a" of 9,000 tokens from Read
    And a result "b" of 9,000 tokens from Grep
    When the policy is applied
    Then 1 result is cleared
    And the results "a" and "b" are kept

  Scenario: Of parallel calls the newest results stay and the others leave
    Given 4 parallel Bash results of 9,000 tokens
    When the policy is applied
    Then 1 result is cleared

  Scenario: The input of a tool that was named is emptied with its result
    Given the messages
      """
      [
        {"role": "user", "content": "Write it."},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "w", "name": "write_file", "input": {"path": "a.py"}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "w", "content": "Written. The file has three lines more than before, and the tests that import it were found and run again: they all pass."}
        ]}
      ]
      """
    And a session with 4 Bash results of 9,000 tokens
    When the policy is applied
    Then the result "w" is cleared
    And the call "w" is cleared because "its input is emptied with its result"

  Scenario: Nothing is cleared that frees less than 5,000 tokens
    Given a session with 1 Bash results of 4,000 tokens
    And a session with 3 Bash results of 20,000 tokens
    When the policy is applied
    Then 0 results are cleared

  Scenario: An excluded tool keeps its results
    Given a result "m" of 9,000 tokens from memory
    And a session with 4 Bash results of 9,000 tokens
    When the policy is applied
    Then the result "m" is kept because "memory is excepted"
    And 1 result is cleared

  Scenario Outline: A summary replaces the history over its own trigger
    Given a user message of <size> tokens
    When the policy is applied
    Then the history is <state>

    Examples:
      | size    | state         |
      | 120,000 | not compacted |
      | 120,001 | compacted     |
