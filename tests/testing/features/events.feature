Feature: What happens in a scenario
  Each event, seen by what it leaves.

  Background:
    Given the policy
      """
      min_chars: 100
      items:
        tool_result: {offload: true, keep_recent: 1}
      placeholder: "[{relative_path}]"
      steps:
        - {name: huge, on: arrival, do: offload, select: {min_chars: 1000}}
        - {name: retire, do: offload}
      """

  Scenario: Results arrive, one after the other
    When a result "a" of 1000 characters arrives
    And a result "b" of 999 characters arrives from Bash
    And 2 Bash results of 2000 characters arrive
    Then 3 results are newly offloaded by the step "huge"
    And the result "b" is kept because "999 < 1,000 chars"
    And the last Bash result reads like "[./tool_result/Bash/call_*.md]"

  Scenario: Results of one message arrive together
    When these results arrive:
      | id | tool | size            |
      | a  | Bash | 1500 characters |
      | b  | Read | 20 characters   |
    And the policy is applied
    Then the context has 2 messages
    And the result "a" is offloaded
    And the result "b" is kept

  Scenario: A message arrives as JSON
    When these results arrive
      """
      {"role": "tool", "tool_call_id": "a", "content": "exit code 0"}
      """
    Then the result "a" is kept because "below_threshold"
    And the result "a" is the same object as before
    And the content of the result "a" is a string

  Scenario: What arrived belongs to the context
    When a result "a" of 1000 characters arrives from Bash
    And a result "b" of 500 characters arrives from Bash
    And a result "c" of 500 characters arrives from Bash
    And the policy is applied before the next model call
    Then the results "a" and "b" are offloaded
    But only the result "b" is newly offloaded
    And the result "b" is offloaded by the step "retire"

  Scenario Outline: A conversation goes on, whichever list the caller passes
    Given <mode>
    And a session with 2 Bash results of 500 characters
    When the policy is applied
    And the session continues for 4 turns with 2 Bash results of 300 characters each
    And the session continues for 2 turns
    Then 9 Bash results are offloaded
    And the last Bash result is kept because "recent"
    And nothing is newly offloaded
    And the prefix is unchanged
    And in every turn the prefix is unchanged up to the first new decision
    And every offloaded item reads like "[./tool_result/Bash/*.md]"
    And the file of every offloaded item holds its original content
    And 9 files are written

    Examples:
      | mode                                       |
      | no messages                                |
      | the caller passes the edited messages back |

  Scenario: Only a plan is made
    Given a session with 3 Bash results of 500 characters
    When only a plan is made
    Then 2 results are offloaded
    And no file is written
    And no folder is made
    And the input is not changed

  Scenario: The disk is full for a while
    Given a session with 3 Bash results of 500 characters
    When the disk is full
    And the policy is applied
    Then nothing is offloaded
    And the 1st Bash result is kept because "not_saved"
    And 1 warning is given
    And a warning says "No space left on device"
    And the same list is returned
    And no file is written
    When the disk has room again
    And the policy is applied again
    Then 2 Bash results are newly offloaded
    And a warning says "offloading works again"

  Scenario: The process restarts
    Given a session with 3 Bash results of 500 characters
    When the policy is applied
    And the process restarts
    And the policy is applied
    Then 2 Bash results are offloaded
    And the prefix is unchanged
    And only the files "tool_result/Bash/call_1.md" and "tool_result/Bash/call_2.md" are written

  Scenario: A policy that comes later takes the session over
    Given a session with 3 Bash results of 500 characters
    When the policy is applied
    Given the policy
      """
      min_chars: 100
      items: {tool_result: {offload: true}}
      placeholder: "[{relative_path}]"
      steps: [{name: all, do: offload}]
      """
    When the policy is applied
    Then every Bash result is offloaded

  Scenario: The model reads a file again
    Given a session with 3 Bash results of 500 characters
    When the policy is applied
    And the model reads the file of the 1st Bash result with Read
    And the policy is applied
    Then the context has 9 messages
    And the Read result is kept because "recent"
    And the file of the 1st Bash result is "tool_result/Bash/call_1.md"

  Scenario: An error is expected
    Given the policy
      """
      extends: context-offload
      """
    And the root folder is a file
    And a result "a" of 100 characters
    When the policy is applied
    Then it fails with a StoreError
    And it fails with a PolicyctxError that says "Not a directory"
    And no file is written
    And the input is not changed

  Scenario: A policy that is wrong is refused when it is first needed
    Given the policy
      """
      min_char: 3
      """
    When the policy is applied
    Then it fails with a PolicyError that says "did you mean 'min_chars'?"
    And it fails with a PolicyError that says "events.feature:142:1: PC101"

  Scenario: Messages that are none
    Given the messages
      """
      [{"role": "user", "content": 7}]
      """
    When the policy is applied
    Then it fails with a MessagesError that says "message 0"

  Scenario Outline: A policy takes values from the environment
    Given the policy
      """
      min_chars: ${POLICYCTX_TEST_MIN_CHARS:-200}
      items: {tool_result: {offload: true}}
      steps: [{name: all, do: offload}]
      """
    And the environment variable POLICYCTX_TEST_MIN_CHARS is <value>
    And a session with 2 Bash results of 300 characters
    When the policy is applied
    Then <count> results are offloaded

    Examples:
      | value   | count |
      | not set | 2     |
      | "300"   | 2     |
      | "301"   | 0     |

  Scenario: A session that comes later is another one
    Given the policy
      """
      min_chars: 100
      items: {tool_result: {offload: true}}
      store: {path: "{session_id}/{tool_use_id}.md", state: none}
      steps: [{name: leave, do: offload}]
      """
    And the session "one"
    And a result "a" of 300 characters from Bash
    When the policy is applied
    Then the root folder holds only the file "one/a.md"
    Given the session "two"
    When the policy is applied again
    Then the root folder holds only the files "one/a.md" and "two/a.md"
