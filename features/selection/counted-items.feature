Feature: A step whose gate counts items sees what the steps before it have left
  An item that an earlier step drops in the same turn does not count any more.

  Scenario Outline: Dropped results do not open the gate of a later step
    Given the policy
      """
      min_chars: 100
      items: {tool_result: {offload: true}}
      steps:
        - name: retire
          do: drop
          select: {types: [tool_result], tools: [Bash], keep_recent: <bash>}
        - name: reads
          do: offload
          when: {items: {types: [tool_result], over: 3}}
          select: {types: [tool_result], tools: [Read], keep_recent: 1}
      """
    And 4 Bash results of 500 characters
    And 2 Read results of 500 characters
    When the policy is applied
    Then the gate items of the step reads <state>

    Examples:
      | bash | state        |
      | 1    | stays closed |
      | 2    | opens        |
