Feature: A list that the provider would refuse as it is
  An agent that is interrupted leaves a call without a result, and a list that somebody cut off begins
  with half of a pair. Most providers refuse such a list. `on_broken` says what happens to it.

  Background:
    Given the policy
      """
      on_broken: repair
      """

  Scenario: The user stops a tool and writes on
    Given the messages
      """
      [{"role": "user", "content": "Run the tests."},
       {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {}}]},
       {"role": "user", "content": "Stop, use make."}]
      """
    When the policy is applied
    Then the context has 2 messages
    And a warning says "the call a has no result right after it; dropped"

  Scenario: A result that comes behind the words of the user is not lost
    Given the messages
      """
      [{"role": "user", "content": "Run the tests."},
       {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "run", "arguments": "{}"}}]},
       {"role": "user", "content": "Hurry."},
       {"role": "tool", "tool_call_id": "a", "content": "3 failed"}]
      """
    When the policy is applied
    Then the context has 3 messages
    And a warning says "the result a has no call right before it; now a message of the user"

  Scenario: A list that was cut off begins with a prompt
    Given the messages
      """
      [{"role": "assistant", "content": "The tests pass."}, {"role": "user", "content": "Commit."}]
      """
    When the policy is applied
    Then the context has 3 messages
    And a warning says "the list begins with an assistant message"

  Scenario: A valid list stays as it is
    Given a user message that reads "go"
    And 3 Bash results of 500 characters
    When the policy is applied
    Then unchanged messages are the same objects
    And no warning is given

  Scenario: A policy may refuse it
    Given the policy
      """
      on_broken: refuse
      """
    And the messages
      """
      [{"role": "user", "content": "Go."}, {"role": "assistant", "content": []}]
      """
    When the policy is applied
    Then it fails with a BrokenMessagesError that says "a message of role assistant is empty"
