Feature: What a token is, where the policy says it in characters
  `model.tokenizer` may be a map: characters of a token, how a text is rounded, tokens of a message.

  Scenario Outline: A threshold in tokens goes by the characters of a token
    Given the policy
      """
      model: {tokenizer: {chars_per_token: <chars>, round: <round>}}
      min_tokens: 25
      items: {tool_result: {offload: true}}
      placeholder: "[{tokens} tokens]"
      steps: [{name: clear, do: clear}]
      """
    And a result "a" of 98 characters
    When the policy is applied
    Then the result "a" is <state>

    Examples:
      | chars | round   | state   |
      | 4     | up      | cleared |
      | 4     | down    | kept    |
      | 4     | nearest | cleared |
      | 5     | up      | kept    |

  Scenario Outline: Each message adds its tokens to the list
    Given the policy
      """
      model: {tokenizer: {chars_per_token: 4, per_message: <each>}}
      items: {tool_result: {offload: true}}
      placeholder: "[gone]"
      steps: [{name: clear, do: clear, when: {tokens: {at_least: 30}}}]
      """
    And the messages
      | role | type   | tool | size          |
      | user |        |      | 40 characters |
      |      | result | Bash | 40 characters |
    When the policy is applied
    Then 1 result is <state>

    Examples:
      | each | state   |
      | 0    | kept    |
      | 3    | cleared |
