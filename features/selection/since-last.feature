Feature: A step waits until enough came since it last took something
  An edit costs the part of the prompt cache behind it, so a step may wait for several results.

  Background:
    Given the policy
      """
      min_chars: 100
      items: {tool_result: {offload: true}}
      steps:
        - name: old
          do: clear
          select: {types: [tool_result]}
          when: {since_last: {messages: {at_least: 4}}}
      """
    And a session with 2 Bash results of 200 characters
    When the policy is applied
    Then 2 results are newly cleared

  Scenario: The step stays closed until so many messages came
    Given 1 Bash result of 200 characters
    When the policy is applied
    Then the gate "since_last.messages" of the step "old" stays closed because "2 < 4"
    And nothing is newly cleared

  Scenario: It opens when they came, and counts anew
    Given 2 Bash results of 200 characters
    When the policy is applied
    Then the gate "since_last.messages" of the step "old" opens
    And 2 results are newly cleared

  Scenario: It counts on after a restart
    Given 1 Bash result of 200 characters
    When the process restarts
    And the policy is applied
    Then the gate "since_last.messages" of the step "old" stays closed because "2 < 4"
    And the first 2 Bash results are cleared
    And the last Bash result is kept because "gate_closed"
