Feature: The newest results stay, and parallel calls stay together or are split
  Results of parallel calls stay together while one of them is recent, unless the `keep_recent` that
  counts it says `batches: split`.

  Scenario Outline: A batch is whole by default, and split on demand
    Given the policy
      """
      min_chars: 100
      items: {tool_result: {offload: true}}
      steps:
        - {name: old, do: clear, select: {types: [tool_result], keep_recent: {items: 2, per: all<batches>}}}
      """
    And 3 parallel Read results of 200 characters
    When the policy is applied
    Then <cleared> results are cleared
    And <kept> results are kept because "<reason>"

    Examples:
      | batches          | cleared | kept | reason       |
      |                  | no      | 1    | batch_recent |
      | , batches: whole | no      | 1    | batch_recent |
      | , batches: split | 1       | 2    | recent       |

  Scenario: The key of the recent result decides for those beside it
    Given the policy
      """
      min_chars: 100
      items: {tool_result: {offload: true}}
      tools: {Read: {keep_recent: {items: 1, batches: split}}, Bash: {keep_recent: 1}}
      steps: [{name: old, do: clear, select: {types: [tool_result]}}]
      """
    And the messages
      | role      | type   | tool | id | size           |
      | user      |        |      |    | 20 characters  |
      | assistant | call   | Read | a  | 20 characters  |
      | and       | call   | Read | b  | 20 characters  |
      | and       | call   | Bash | c  | 20 characters  |
      | user      | result |      | a  | 200 characters |
      | and       | result |      | b  | 200 characters |
      | and       | result |      | c  | 200 characters |
    When the policy is applied
    Then the result "a" is kept because "batch_recent"

    Given the messages
      | role      | type   | tool | id | size           |
      | assistant | call   | Bash | d  | 20 characters  |
      | user      | result |      | d  | 200 characters |
    When the policy is applied
    Then the result "a" is cleared
    And the result "c" is cleared
    And the result "b" is kept because "recent"

  Scenario: What a recent result held leaves as soon as a later step drops that result
    Given the policy
      """
      min_chars: 100
      items:
        tool_result: {offload: true}
        noise: {match: {type: tool_result, text: {startswith: "noise"}}}
      steps:
        - {name: old, do: clear, select: {types: [tool_result], keep_recent: 1}}
        - {name: noise, do: drop, select: {types: [noise]}}
      """
    And the messages
      | role      | type   | tool | id | size           | text  |
      | user      |        |      |    | 10 characters  |       |
      | assistant | call   | Bash | a  | 100 characters |       |
      | and       | call   | Bash | b  | 100 characters |       |
      | user      | result |      | a  | 300 characters |       |
      | and       | result |      | b  |                | noise |
    When the policy is applied
    Then the result "b" is dropped
    And the result "a" is cleared
