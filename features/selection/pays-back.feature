Feature: A step waits until what it saves pays for what it costs
  An edit has the prompt behind it written to the cache again, and each later call reads less. How
  many calls are to come nobody knows: a share of those that were made is a guess that grows with
  the session.

  Background:
    Given the policy
      """
      model: {name: claude-opus-4-8}
      items: {tool_result: {offload: true}}
      steps:
        - name: old
          do: offload
          select: {types: [tool_result], keep_recent: 4}
          when: {pays_back: {at_most: 25%}, frees: {at_least: 5000}}
      """
    And a session with 1 Bash result of 10 tokens

  Scenario: It waits while later calls would save too little, and says both sides
    When the policy is applied
    And the session continues for 10 turns with 1 Bash result of 3,000 tokens each
    Then the gate "frees" of the step "old" opens
    And the gate "pays_back" of the step "old" stays closed because "> 5 (costs $0.05"
    And no results are offloaded

  Scenario: It opens when a quarter of the calls so far would pay, and all that is old leaves
    When the policy is applied
    And the session continues for 12 turns with 1 Bash result of 3,000 tokens each
    Then 8 results are offloaded

  Scenario: What is before the first change costs nothing, however much it is
    Given a user message of 50,000 tokens
    When the policy is applied
    And the session continues for 12 turns with 1 Bash result of 3,000 tokens each
    Then 8 results are offloaded

  Scenario: It counts the calls before a restart
    When the policy is applied
    And the session continues for 10 turns with 1 Bash result of 3,000 tokens each
    And the process restarts
    And only a plan is made
    Then the gate "pays_back" of the step "old" stays closed because "> 5.25 (costs $0.0"
    When the session continues for 2 turns with 1 Bash result of 3,000 tokens each
    Then 8 results are offloaded
    When the process restarts
    And the policy is applied
    Then 8 results are offloaded
    And nothing is newly offloaded

  Scenario: What left can be read back
    When the policy is applied
    And the session continues for 12 turns with 1 Bash result of 3,000 tokens each
    Then every offloaded result can be read back
    And every offloaded result can be restored

  Scenario Outline: An edit costs nothing once the cache has expired
    When the policy is applied
    And the session continues for 8 turns with 1 Bash result of 3,000 tokens each
    And <pause> pass
    And the policy is applied
    Then <gone> results are offloaded

    Examples:
      | pause       | gone |
      | 299 seconds | no   |
      | 301 seconds | 4    |

  Scenario Outline: A prompt that is too short for a cache costs nothing to change
    Given the policy
      """
      model: {name: claude-opus-4-8, cache: {min_tokens: <least>}}
      items: {tool_result: {offload: true}}
      steps:
        - name: old
          do: offload
          select: {types: [tool_result], keep_recent: 4}
          when: {pays_back: {at_most: 25%}}
      """
    When the policy is applied
    And the session continues for 8 turns with 1 Bash result of 3,000 tokens each
    Then <gone> results are offloaded

    Examples:
      | least  | gone |
      | 1024   | no   |
      | 100000 | 4    |

  Scenario Outline: The price is that of the model and of its writes, a limit may be a number
    Given the policy
      """
      model: {<model>}
      items: {tool_result: {offload: true}}
      steps:
        - name: old
          do: offload
          select: {types: [tool_result], keep_recent: 4}
          when: {pays_back: {at_most: <limit>}}
      """
    When the policy is applied
    And the session continues for 10 turns with 1 Bash result of 3,000 tokens each
    Then the gate "pays_back" of the step "old" stays closed because "<why>"

    Examples:
      | model                                      | limit | why                                           |
      | name: claude-opus-4-8                      | 25%   | > 5 (costs $0.05                              |
      | name: claude-opus-4-8, cache: {ttl: 1h}    | 25%   | 10 > 5                                        |
      | name: a-model-of-ours                      | 25%   | times the price of a million tokens of input  |
      | name: claude-opus-4-8                      | 2     | > 2                                           |
