Feature: Writes that fail
  When a result cannot be saved, the loop around the call decides what to do: it gets an error with
  the words of the system, and its message as it was.

  Background:
    Given the policy "tool-direct-offload"
    And the session "session-abc123"

  @UC-003 @F-001 @BR-3.2-12
  Scenario: A full disk is an error for the caller
    When the disk is full
    And a result "toolu_xyz" of 1500 characters arrives from Bash
    Then it fails with a StoreError that says "No space left"
    And the input is not changed
    And no file is written

  @UC-003 @F-001 @BR-3.2-12 @BR-5.3-3
  Scenario Outline: A folder that cannot be used is an error for the caller
    Given the root folder <state>
    When a result "toolu_xyz" of 1500 characters in blocks arrives from Bash
    Then it fails with a StoreError that says "<words>"
    And the input is not changed

    Examples:
      | state             | words             |
      | cannot be written | Permission denied |
      | is a file         | Not a directory   |

  Scenario: A link that leads out of the root folder is not written through
    Given a file "elsewhere/mine.txt" that reads "mine"
    And the root folder has the link "session-abc123" to "elsewhere"
    When a result "toolu_xyz" of 1500 characters arrives
    Then it fails with a StoreError that says "session-abc123"
    And no file is written

  @UC-003 @F-001 @BR-3.2-12
  Scenario: A folder where the file should be is an error for the caller
    Given a file "session-abc123/toolu_xyz.md/inside" that reads "somebody else's"
    When a result "toolu_xyz" of 1500 characters arrives
    Then it fails with a StoreError that says "toolu_xyz.md"
    And the file "session-abc123/toolu_xyz.md/inside" reads "somebody else's"

  @UC-003 @F-001 @BR-3.2-12
  Scenario: A write that fails leaves the file of before as it was
    Given a file "session-abc123/toolu_xyz.md" that reads "old"
    When the disk is full
    And a result "toolu_xyz" of 1500 characters arrives
    Then it fails with a StoreError
    And the root folder holds only the file "session-abc123/toolu_xyz.md"
    And the file "session-abc123/toolu_xyz.md" reads "old"

  @UC-003 @F-001 @BR-3.2-16
  Scenario: After a write that failed, the caller can simply try again
    When the disk is full
    And a result "toolu_xyz" of 1500 characters arrives
    Then it fails with a StoreError
    When the disk has room again
    And a result "toolu_xyz" of 1500 characters arrives
    Then the root folder holds only the file "session-abc123/toolu_xyz.md"

  @F-001 @BR-3.2-12
  Scenario: Where nothing is to be written, a full disk is no error
    When the disk is full
    And a result "toolu_xyz" of 999 characters arrives
    Then the result "toolu_xyz" is kept
