Feature: The newest stay up to a number of tokens
  With `tokens` the item or message that crosses the line stays too, with `max_tokens` it leaves.

  Scenario Outline: The newest results stay
    Given the policy
      """
      min_chars: 100
      model: {tokenizer: approximate}
      items: {tool_result: {offload: true}}
      steps: [{name: old, do: <do>, select: {types: [tool_result], keep_recent: {<kept>}}}]
      """
    And a user message that reads "first"
    And a result "a" of 400 characters from Bash
    And a result "b" of 400 characters from Bash
    And a result "c" of 400 characters from Bash
    When the policy is applied
    Then <gone> results are <done>
    And <left> results are kept because "<reason>"

    Examples:
      | do      | kept            | gone | done      | left | reason                              |
      | clear   | tokens: 150     | 1    | cleared   | 2    | newer tokens of Bash, 150 kept      |
      | clear   | max_tokens: 150 | 2    | cleared   | 1    | 100 tokens of Bash with it, at most |
      | offload | max_tokens: 200 | 1    | offloaded | 2    | tokens of Bash with it, at most 200 |
      | drop    | max_tokens: 299 | 1    | dropped   | 2    | tokens of Bash with it, at most 299 |
      | drop    | max_tokens: 300 | no   | dropped   | 3    | tokens of Bash with it, at most 300 |

  Scenario Outline: The newest messages stay before a summary
    Given the policy
      """
      model: {tokenizer: approximate}
      compaction: {keep_recent: {<kept>}, min_new: 0}
      steps: [{name: summarise, do: compact, when: {messages: {at_least: 4}}}]
      """
    And the summarizer answers "The summary."
    And a user message that reads "the task"
    And an assistant message of 400 characters
    And a user message of 400 characters
    And an assistant message of 400 characters
    And a user message of 400 characters
    When the policy is applied
    Then the history is compacted
    And message <last> is summarised
    And message <first> is kept

    Examples:
      | kept            | last | first |
      | tokens: 250     | 2    | 3     |
      | max_tokens: 250 | 3    | 4     |
      | max_tokens: 300 | 2    | 3     |
      | max_tokens: 50  | 4    | 5     |
