Feature: Empty lists and writes that fail
  An empty list is no error. A write that fails is one, for the caller to handle, and nothing is
  left half done.

  Background:
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is not set
    And the policy "context-offload"

  @F-001 @BR-3.2-14
  Scenario: An empty list is returned as it is
    Given no messages
    When the policy is applied
    Then the same list is returned
    And the result reports no offloaded item
    And no characters are freed
    And no file is written
    And no folder is made

  @F-001 @BR-3.2-15 @BR-5.3-2
  Scenario: A full disk is an error for the caller
    Given a result "a" of 300 characters from Bash
    And a result "b" of 300 characters from Bash
    When the disk is full
    And the policy is applied
    Then it fails with a StoreError that says "No space left"
    And no file is written
    And the input is not changed

  @F-001 @BR-3.2-15 @BR-5.3-2
  Scenario Outline: A folder that cannot be used is an error for the caller
    Given the root folder <state>
    And a result "a" of 300 characters from Bash
    When the policy is applied
    Then it fails with a StoreError that says "<words>"
    And the input is not changed

    Examples:
      | state             | words             |
      | cannot be written | Permission denied |
      | is a file         | Not a directory   |

  @F-001 @BR-3.2-15 @BR-3.2-19
  Scenario: After a write that failed, the caller can simply try again
    Given a result "a" of 300 characters from Bash
    When the disk is full
    And the policy is applied
    Then it fails with a StoreError
    When the disk has room again
    And the policy is applied again
    Then only the result "a" is offloaded
    And the root folder holds only the file "tool-result-a.md"

  @F-001 @BR-3.2-15
  Scenario: Where nothing is to be written, a full disk is no error
    Given a result "short" of 99 characters from Bash
    When the disk is full
    And the policy is applied
    Then the same list is returned
