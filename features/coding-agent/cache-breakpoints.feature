Feature: Cache breakpoints stand where the next edit begins
  With `breakpoints: auto` a request has a cache marker right before the first item that the policy
  could still remove, so that the edit which removes it is billed for what follows alone.

  Background:
    Given the policy:
      """
      extends: coding-agent
      model: {cache: {breakpoints: auto}}
      min_tokens: 100
      steps: [{name: retire, do: offload, select: {keep_recent: 2}}]
      """

  Scenario: The anchor comes before the oldest large result, though it is protected
    Given a result "small" of 10 tokens from Bash
    And a result "large" of 3,000 tokens from Bash
    When the policy is applied
    Then a cache breakpoint stands right before the result "large"
    And the result "large" is kept

  Scenario: An edit moves the anchor, also after a restart
    Given a result "a" of 3,000 tokens from Bash
    And a result "b" of 3,000 tokens from Bash
    When the policy is applied
    Then a cache breakpoint stands right before the result "a"
    When the process restarts
    And the session continues for 1 turn with 1 Bash result of 3,000 tokens each
    Then the result "a" is offloaded
    And a cache breakpoint stands right before the result "a"
    And a cache breakpoint stands right before the result "b"
