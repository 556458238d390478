Feature: The provider refuses a prompt as too long
  A count is an estimate, a local model has a small window, and the result of one tool may be larger
  than all before. Then the provider refuses the prompt. The steps with `on: overflow` say what to do,
  and the prompt is sent once more. What was refused is the window of that model from then on.

  Background:
    Given the policy
      """
      items: {tool_result: {offload: true}}
      steps:
        - name: retire
          do: offload
          when: {tokens: {at_least: 80%}}
          select: {types: [tool_result], keep_recent: 2}
        - name: too-long
          on: overflow
          do: drop
          select: {unit: group, types: ["*"], until: {tokens: {under: 60%}}}
      """
    And a user message that reads "Run the tests."
    And 10 Bash results of 400 tokens
    And a user message that reads "And now?"

  Scenario: Nothing leaves before a refusal
    When the policy is applied
    Then unchanged messages are the same objects

  Scenario: Old groups leave until the prompt is under 60 % of what was refused
    When the policy is applied
    And the provider refuses the prompt as too long
    Then the request is sent again
    And 5 results are dropped
    And 5 results are kept
    And message 1 is kept

  Scenario: What the error says of size and limit counts
    When the policy is applied
    And the provider refuses the prompt as too long of 5,000 tokens over 4,096 tokens
    Then the request is sent again
    And 7 results are dropped
    And a warning says "refused a prompt of about 5,000 tokens"
    And a warning says "its window counts as 4,096 tokens"

  Scenario: The window is remembered
    When the policy is applied
    And the provider refuses the prompt as too long
    Given 8 Bash results of 400 tokens
    When the policy is applied
    Then 11 results are offloaded

  Scenario: A list that cannot become shorter is not sent again
    Given the policy
      """
      steps: [{name: too-long, on: overflow, do: drop, select: {types: [image]}}]
      """
    When the policy is applied
    And the provider refuses the prompt as too long
    Then the request is not sent again

  Scenario: A summary may be the last resort
    Given the policy
      """
      compaction: {keep_recent: {messages: 1}}
      steps: [{name: last-resort, on: overflow, do: compact}]
      """
    When the policy is applied
    And the provider refuses the prompt as too long
    Then the history is compacted
    And the request is sent again

  Scenario Outline: The summary on overflow is made although another step makes one before each call
    Given the policy
      """
      store: {state: <state>}
      compaction: {keep_recent: {messages: 1}}
      steps:
        - {name: usual, do: compact, when: {messages: {over: 400}}}
        - {name: last-resort, on: overflow, do: compact}
      """
    When the policy is applied
    Then the history is not compacted
    When the provider refuses the prompt as too long
    Then the history is compacted
    And the request is sent again

    Examples:
      | state   |
      | kept    |
      | none    |
