Feature: Every call stands alone
  A call depends on the messages and the folder only. All that it leaves behind is the files of
  what it offloaded; the messages that it was given stay as they are.

  Background:
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is not set
    And the policy "context-offload"

  @F-001 @BR-3.2-19
  Scenario: The same call twice says the same twice
    Given a result "a" of 300 characters from Bash
    And a result "a" of 400 characters in blocks from Bash
    When the policy is applied
    Then the result lists the files "tool-result-a.md" and "tool-result-a-1.md"
    When the policy is applied again
    Then 2 results are newly offloaded
    And 700 characters are freed
    And the result lists the files "tool-result-a.md" and "tool-result-a-1.md"
    And the prefix is unchanged
    And the root folder holds only the files "tool-result-a.md" and "tool-result-a-1.md"

  @F-001 @BR-3.2-19
  Scenario: A call knows nothing of what an earlier one has offloaded
    Given a result "a" of 300 characters from Bash
    When the policy is applied
    Then the result reports 1 offloaded item
    Given a result "b" of 400 characters from Bash
    When the policy is applied again
    Then 2 results are newly offloaded
    And 700 characters are freed

  @F-001 @BR-3.2-19 @BR-5.3-3
  Scenario: A later call keeps the file that an earlier one has written under the same id
    Given a result "a" of 300 characters
    When the policy is applied
    Then the file "tool-result-a.md" holds the original content of the result "a"
    Given no messages
    And a result "a" of 400 characters
    When the policy is applied again
    Then the file of the result "a" is "tool-result-a-1.md"
    And the file "tool-result-a-1.md" holds the original content of the result "a"
    And the root folder holds only the files "tool-result-a.md" and "tool-result-a-1.md"

  @F-001 @BR-3.2-19
  Scenario: A new process goes on as if nothing had been
    Given a result "a" of 300 characters from Bash
    When the policy is applied
    And the process restarts
    And the policy is applied again
    Then 1 result is newly offloaded
    And the result reads "[Content offloaded to: ./tool-result-a.md]"
    And the root folder holds only the file "tool-result-a.md"

  @F-001 @BR-3.2-20
  Scenario: Nothing but the files of results is left in the folder or beside it
    Given a result "a" of 300 characters from Bash
    And a result "b" of 300 characters from Read
    When the policy is applied
    Then the root folder holds only the files "tool-result-a.md" and "tool-result-b.md"
    And every file is below the root folder

  @BR-3.2-20
  Scenario: A plan alone writes nothing
    Given a result "a" of 300 characters from Bash
    When only a plan is made
    Then the result "a" is offloaded
    And no file is written
    And no folder is made

  @F-001 @BR-3.2-21
  Scenario: The messages that were given stay as they are
    Given a user message of 50 characters
    And 3 parallel Bash results of 300 characters
    And a result "blocks" of 300 characters in blocks from Read
    When the policy is applied
    Then 4 results are offloaded
    And the input is not changed

  @F-001 @BR-3.2-11
  Scenario: Only messages that change are copied, and those as a whole
    Given the messages
      | type   | role | id    | size           |
      |        | user |       | 50 characters  |
      | result |      | short | 50 characters  |
      | text   | user |       | 50 characters  |
      | result | and  | long  | 500 characters |
      | text   | and  |       | 20 characters  |
    When the policy is applied
    Then only the result "long" is offloaded
    And messages 1 to 2 are the same objects as before
    And unchanged messages are the same objects
    And changed messages are deep copies
