Feature: The newest replies are counted, such as those whose thinking stays
  In one turn of many calls `turns` keeps all thinking or none; agents want the last few replies to
  keep theirs.

  Scenario Outline: Results of the newest replies stay
    Given the policy
      """
      min_chars: 100
      items: {tool_result: {offload: true}}
      steps: [{name: old, do: clear, select: {types: [tool_result], keep_recent: {replies: <kept>}}}]
      """
    And a result "a" of 200 characters from Bash
    And a result "b" of 200 characters from Read
    And a result "c" of 200 characters from Bash
    When the policy is applied
    Then <cleared> results are cleared
    And <left> results are kept because "newest reply, <kept> kept"

    Examples:
      | kept | cleared | left |
      | 1    | 2       | 1    |
      | 2    | 1       | 2    |
      | 3    | no      | 3    |
