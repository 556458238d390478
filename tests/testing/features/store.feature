Feature: The session's store
  What is kept of what left, and for how long; `failing.feature` has each where it does not hold.

  Background:
    Given the policy
      """
      items:
        tool_result: {offload: true}
      placeholder: "[{relative_path} of {chars}]"
      store: {path: "{tool_use_id}.md", retention: {max_age: 30d}}
      steps:
        - {name: leave, do: offload, select: {keep_recent: 2}}
        - {name: go, do: drop, when: {turns: {over: 3}}, select: {types: [tool_result], keep_recent: 1}}
      """
    And a session with 2 Bash results of 300 characters
    And a result "a" of 2,400 characters in blocks from Bash
    And 2 Bash results of 300 characters

  Scenario: What a session lists of its items
    When the policy is applied
    Then the result "a" is offloaded
    And the result "a" is listed as offloaded
    And the result "a" is listed as destroyed
    And the last Bash result is listed as kept
    And every user message is listed as kept
    When the process restarts
    And the policy is applied again
    Then the result "a" is listed as offloaded

  Scenario: What left can be read back and restored
    When the policy is applied
    Then every offloaded item can be read back
    And the result "a" can be restored
    And the history tells that the result "a" was saved
    And the history tells that the first 2 results were saved

  Scenario: What no placeholder names is compressed, and goes when it is old
    When the session continues for 4 turns
    Then the result "a" is dropped
    When 2 hours pass
    And the store is collected
    Then the file "a.md" is gone
    And the file "a.md.zst" is written
    And the history tells that the result "a" was packed
    And the result "a" can be read back
    And the result "a" can be restored
    When 30 days pass
    And the store is collected
    Then the file "a.md" is gone
    And the history tells that the result "a" was removed
    And the files "a.md" and "call_1.md" are gone

  Scenario: What a placeholder names stays, however old
    When the policy is applied
    And 300 days pass
    And the store is collected
    Then the file of the result "a" holds its original content
    And the result "a" is listed as offloaded

  Scenario: A session names itself
    Given the session has no id yet
    And the policy's own root folder
    When the policy is applied
    Then the session's id matches "session_[0-9]{8}_[0-9]{6}_[a-z0-9]{6}"
    And the file of the result "a" is "{root}/a.md"
