Feature: Results that failed
  With `errors: false` a step leaves the results of calls that failed, whatever their age.

  Scenario Outline: A failed result leaves or stays as the policy says
    Given the policy
      """
      items: {tool_result: {offload: true}}
      steps: [{name: retire, do: offload, select: {types: [tool_result], errors: <errors>}}]
      """
    And a failed result "wrong" of 3,000 characters from Bash
    And a result "right" of 3,000 characters from Bash
    When the policy is applied
    Then only <offloaded> offloaded

    Examples:
      | errors | offloaded                           |
      | true   | the results "wrong" and "right" are |
      | false  | the result "right" is               |
