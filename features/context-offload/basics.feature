Feature: Context offload
  The results of tools that are long enough go to files, all at once, when the caller asks for it.
  Their place in the messages is taken by the path of the file.

  Background:
    Given the policy "context-offload"

  @UC-001 @F-001 @F-003
  Scenario: A long result is offloaded
    Given a result "toolu_01abc" of 2500 characters from Bash
    When the policy is applied
    Then the result "toolu_01abc" reads "[Content offloaded to: ./tool-result-toolu_01abc.md]"
    And the file "tool-result-toolu_01abc.md" holds what the result "toolu_01abc" held

  @UC-002 @F-002
  Scenario Outline: From 100 characters on a result is offloaded
    Given a result "toolu_x" of <size> characters from Bash
    When the policy is applied
    Then <count> results are offloaded

    Examples:
      | size | count |
      | 0    | 0     |
      | 99   | 0     |
      | 100  | 1     |
      | 101  | 1     |

  @UC-003
  Scenario: Of long and short results only the long ones leave
    Given a result "long" of 300 characters from Bash
    And a result "short" of 30 characters from Read
    When the policy is applied
    Then the result "long" reads "[Content offloaded to: ./tool-result-long.md]"
    And the result "short" is the same object as before

  @UC-004
  Scenario: Without a tool result nothing happens
    Given a user message of 5000 characters
    When the policy is applied
    Then the same list is returned
    And no file is written

  @F-001
  Scenario: An empty list is returned as it is
    When the policy is applied
    Then the same list is returned
    And 0 results are offloaded
    And no file is written

  @F-001
  Scenario: A second result under one id gets a number
    Given a result "twice" of 300 characters from Bash
    And a result "twice" of 400 characters from Bash
    When the policy is applied
    Then the files are "tool-result-twice.md" and "tool-result-twice-1.md"

  @F-002 @F-003
  Scenario: A result of blocks is measured and saved as JSON
    Given a result "blocks" of one text block of 90 characters from Bash
    When the policy is applied
    Then the result "blocks" reads "[Content offloaded to: ./tool-result-blocks.md]"
    And the file "tool-result-blocks.md" is the JSON of the blocks

  @F-004
  Scenario: The result says how much was offloaded, and where
    Given a result "a" of 300 characters from Bash
    And a result "b" of 400 characters from Bash
    When the policy is applied
    Then 2 results are offloaded
    And 700 characters are freed
    And the paths of the files are absolute

  @F-005
  Scenario: The folder is made when it is not there
    Given the root is the folder "not/there/yet"
    And a result "a" of 300 characters from Bash
    When the policy is applied
    Then the file "tool-result-a.md" holds what the result "a" held

  @F-001
  Scenario: A write that fails is an error for the caller
    Given the root is below a file
    And a result "a" of 300 characters from Bash
    When the policy is applied
    Then it fails with a StoreError
    And the messages are as they were
