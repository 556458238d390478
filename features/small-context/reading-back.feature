Feature: What the agent reads back stays for a while, and leaves without a second copy
  The agent reads a file of its own again, with a tool of its host or with read_offloaded. The
  result stays in the context like any other recent one. When it leaves, its placeholder names the
  file that it was read from.

  Background:
    Given the policy "small-context"
    And a session with a result "a" of 3,000 tokens from Bash
    And 5 Bash results of 10 tokens
    When the policy is applied
    Then only the result "a" is offloaded

  Scenario Outline: A result that was read whole leaves the name of the original file
    When the model reads the file of the result "a" with <tool>
    And the policy is applied again
    Then the last <tool> result is kept because "recent"
    When the session continues for 1 turn with 5 Bash results of 10 tokens each
    Then the last <tool> result is newly offloaded
    And the file of the last <tool> result is "tool_result/Bash/a.md"
    And the last <tool> result reads like "*Path: {root}/tool_result/Bash/a.md*"
    And only the file "tool_result/Bash/a.md" is written

    Examples:
      | tool           |
      | Read           |
      | cat            |
      | read_offloaded |

  Scenario Outline: A result that was read back leaves at once when it is larger than the window
    Given a result "b" of 250,000 tokens from Bash
    When the policy is applied
    Then the result "b" is offloaded by the step make-it-fit
    When the model reads the file of the result "b" with <tool>
    And the policy is applied again
    Then the last <tool> result is offloaded by the step make-it-fit
    And the file of the last <tool> result is "tool_result/Bash/b.md"
    And no warnings are given

    Examples:
      | tool           |
      | Read           |
      | read_offloaded |

  Scenario: A part of a file leaves the name of the file too
    Given a result "lines" of 20,000 characters that begins with "one\ntwo\nthree\n" from Bash
    And 5 Bash results of 10 tokens
    When the policy is applied
    Then the result "lines" is offloaded
    When the model reads lines 4 to 150 of the result "lines" back
    And the session continues for 1 turn with 5 Bash results of 10 tokens each
    Then the last read_offloaded result is newly offloaded
    And the last read_offloaded result reads like "*Path: {root}/tool_result/Bash/lines.md*"
    And only the files "tool_result/Bash/a.md" and "tool_result/Bash/lines.md" are written

  Scenario: A search finds a text in any case
    Given a result "log" of 20,000 characters that begins with "Connection refused\n" from Bash
    And 5 Bash results of 10 tokens
    When the policy is applied
    Then the result "log" is offloaded
    When the model searches the files for "REFUSED"
    And the policy is applied again
    Then the last search_offloaded result reads like "*log.md:1*Connection refused*"

  Scenario: What a search found can be found again, so no file is made for it
    When the model searches the files for "a"
    And the policy is applied again
    Then the last search_offloaded result is kept because "recent"
    When the session continues for 1 turn with 5 Bash results of 10 tokens each
    Then the last search_offloaded result is newly cleared
    And the last search_offloaded result reads "[Old tool result cleared; make the call again if you need it]"
    And only the file "tool_result/Bash/a.md" is written

  Scenario: It is the same after a restart
    When the model reads the file of the result "a" with Read
    And the process restarts
    And the session continues for 1 turn with 5 Bash results of 10 tokens each
    Then the last Read result is newly offloaded
    And the file of the last Read result is "tool_result/Bash/a.md"
    And only the file "tool_result/Bash/a.md" is written

  Scenario: It is the same when the caller keeps the edited list
    Given the caller passes the edited messages back
    When the policy is applied
    And the model reads the result "a" back
    And the session continues for 1 turn with 5 Bash results of 10 tokens each
    Then in every turn the prefix is unchanged up to the first new decision
    And only the file "tool_result/Bash/a.md" is written
