Feature: The newest turns and replies are counted, all of them or those with a candidate

  Scenario Outline: Turns without a result count, or not
    Given the policy
      """
      min_chars: 100
      items: {tool_result: {offload: true}}
      steps: [{name: old, do: clear, select: {types: [tool_result], keep_recent: {<counted>}}}]
      """
    And a user message that reads "first"
    And a result "a" of 200 characters from Bash
    And a user message that reads "well done"
    And a user message that reads "second"
    And a result "b" of 200 characters from Bash
    And a user message that reads "thanks"
    When the policy is applied
    Then <cleared> results are cleared
    And <kept> results are kept because "<reason>"

    Examples:
      | counted                  | cleared | kept | reason                                     |
      | turns: 1                 | 2       | no   |                                            |
      | turns: 2                 | 1       | 1    | in the 2nd newest turn, 2 kept             |
      | turns: 1, of: candidates | 1       | 1    | in the 1st newest turn with one of Bash, 1 |
      | turns: 2, of: candidates | no      | 2    | newest turn with one of Bash, 2 kept       |

  Scenario Outline: Replies without a result count, or not
    Given the policy
      """
      min_chars: 100
      items: {tool_result: {offload: true}}
      steps: [{name: old, do: clear, select: {types: [tool_result], keep_recent: {<counted>}}}]
      """
    And a user message that reads "first"
    And a result "a" of 200 characters from Bash
    And a result "b" of 200 characters from Bash
    And an assistant message that reads "done"
    And a user message that reads "thanks"
    When the policy is applied
    Then <cleared> results are cleared
    And <kept> results are kept because "<reason>"

    Examples:
      | counted                    | cleared | kept | reason                                      |
      | replies: 1                 | 2       | no   |                                             |
      | replies: 1, of: candidates | 1       | 1    | in the 1st newest reply with one of Bash, 1 |
      | replies: 2, of: candidates | no      | 2    | newest reply with one of Bash, 2 kept       |
