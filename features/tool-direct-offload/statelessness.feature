Feature: Every call stands alone, and the message that was given is not touched
  Nothing is counted or remembered from one call to the next, and the caller may keep the message
  that was given.

  Background:
    Given the policy "tool-direct-offload"
    And the session "session-abc123"

  @F-003 @BR-3.2-11 @BR-3.2-22 @BR-3.2-23
  Scenario Outline: The message returned shares nothing with the one that was given
    When a result "toolu_xyz" of <content> arrives
    Then the input is not changed
    And changed messages are deep copies

    Examples:
      | content                   |
      | 1500 characters           |
      | 1500 characters in blocks |

  @F-003 @BR-3.2-11 @BR-3.2-22 @BR-3.2-23
  Scenario: What is beside the result in the message is copied too
    When these results arrive
      | id | tool | type             | size            |
      | a  | Bash | result           | 1500 characters |
      | b  | Read | result in blocks | 50 characters   |
    Then only the result "a" is offloaded
    And the input is not changed
    And changed messages are deep copies

  @F-001 @BR-3.2-15
  Scenario: Nothing but the file is left behind
    When a result "toolu_xyz" of 1500 characters arrives from Bash
    And a result "short" of 20 characters arrives from Bash
    Then the root folder holds only the file "session-abc123/toolu_xyz.md"
    And every file is below the root folder

  @F-001 @BR-3.2-15 @BR-3.2-16
  Scenario: Each call tells only of its own
    When a result "a" of 1500 characters arrives
    Then the result reports 1 offloaded item
    When a result "b" of 1600 characters arrives
    Then the result reports 1 offloaded item
    And the result lists the file "session-abc123/b.md"
    And the characters freed, net of placeholders, add up
    When a result "short" of 20 characters arrives
    Then the result reports no offloaded item

  @F-001 @BR-3.2-16
  Scenario: An equal result that arrives again is offloaded again, to the same file
    Given the policy
      """
      extends: tool-direct-offload
      min_chars: 0
      """
    When a result "toolu_xyz" that reads "工作区是干净的, nothing to commit" arrives
    Then the result reports 1 offloaded item
    When a result "toolu_xyz" that reads "工作区是干净的, nothing to commit" arrives
    Then the result reports 1 offloaded item
    And the result lists the file "session-abc123/toolu_xyz.md"
    And the root folder holds only the file "session-abc123/toolu_xyz.md"
    And the file "session-abc123/toolu_xyz.md" reads "工作区是干净的, nothing to commit"

  @F-001 @BR-3.2-15 @BR-3.2-16
  Scenario: A new process goes on as if nothing had been
    When a result "a" of 1500 characters arrives
    And the process restarts
    And a result "a" of 1600 characters arrives
    Then the root folder holds only the file "session-abc123/a.md"
    And the file "session-abc123/a.md" holds the original content of the 2nd result "a"

  @BR-1.3-2
  Scenario: What was offloaded is not read back
    When a result "toolu_xyz" of 1500 characters arrives from Bash
    And the policy is applied before the next model call
    Then the same list is returned
    And the result "toolu_xyz" reads "[Tool result offloaded to file: {root}/session-abc123/toolu_xyz.md]"

  @BR-1.3-2 @BR-3.2-13
  Scenario: A placeholder never overwrites the file that it names
    Given the policy
      """
      extends: tool-direct-offload
      min_chars: 0
      """
    When a result "toolu_xyz" that reads "工作区是干净的, nothing to commit" arrives from Bash
    And the policy is applied before the next model call
    Then the same list is returned
    And the result reports no offloaded item
    And the file "session-abc123/toolu_xyz.md" reads "工作区是干净的, nothing to commit"
