Feature: Tool direct offload
  A long result goes to a file as it arrives, before a model has seen it.

  Background:
    Given the policy "tool-direct-offload"
    And the session "session-abc123"

  @UC-001 @F-001 @F-002
  Scenario: A long result is offloaded as it arrives
    When a result "toolu_xyz" of 1500 characters arrives
    Then the file "session-abc123/toolu_xyz.md" holds what the result "toolu_xyz" held
    And the result "toolu_xyz" reads "[Tool result offloaded to file: " and the file's absolute path

  @UC-001
  Scenario Outline: From 1000 characters on a result is offloaded
    When a result "toolu_xyz" of <size> characters arrives
    Then <count> results are offloaded

    Examples:
      | size | count |
      | 999  | 0     |
      | 1000 | 1     |

  @UC-002 @F-001
  Scenario: A result of blocks is saved as JSON
    When a result "toolu_xyz" of one text block of 1500 characters arrives
    Then the file "session-abc123/toolu_xyz.md" is the JSON of the blocks

  @UC-003 @F-001
  Scenario: A write that fails is an error for the caller
    Given the root is below a file
    When a result "toolu_xyz" of 1500 characters arrives
    Then it fails with a StoreError

  @F-001
  Scenario: A second result under one id overwrites the first
    When a result "toolu_xyz" of 1500 characters arrives
    And a result "toolu_xyz" of 1600 characters arrives
    Then the file "session-abc123/toolu_xyz.md" holds what the result "toolu_xyz" held

  @F-003
  Scenario: The message that was given stays as it is
    When a result "toolu_xyz" of 1500 characters arrives
    Then the messages are as they were
