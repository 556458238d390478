Feature: What the caller is told
  The new message, the characters that it is shorter by, and the file.

  Background:
    Given the policy "tool-direct-offload"
    And the session "session-abc123"

  @F-001 @BR-3.2-6
  Scenario Outline: What is freed is the content less its placeholder
    When a result "toolu_xyz" of <content> arrives from Bash
    Then the characters freed, net of placeholders, add up
    And under 1500 characters are freed net of placeholders

    Examples:
      | content                   |
      | 1500 characters           |
      | 1500 characters in blocks |

  @F-001 @BR-3.2-6
  Scenario: Where the placeholder is the longer one, what is freed is negative
    Given the policy
      """
      extends: tool-direct-offload
      min_chars: 0
      """
    When a result "toolu_xyz" of 10 characters arrives
    Then the characters freed, net of placeholders, add up
    And under 0 characters are freed net of placeholders

  @F-001 @BR-3.2-7
  Scenario: The file is told by its absolute path
    When a result "toolu_xyz" of 1500 characters arrives
    Then the paths of the files are absolute
    And the result lists the file "session-abc123/toolu_xyz.md"

  @F-004 @BR-1.2-3 @BR-3.2-24 @BR-3.2-25 @BR-4.3-1
  Scenario: A message, a session and a folder are all that has to be given
    Given the root folder "anywhere"
    When a result "toolu_xyz" of 1500 characters arrives
    Then the result reports 1 offloaded item
    And the result lists the file "session-abc123/toolu_xyz.md"
    And the characters freed, net of placeholders, add up
    And the result "toolu_xyz" reads "[Tool result offloaded to file: {path}]"
