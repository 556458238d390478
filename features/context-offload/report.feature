Feature: What the caller is told
  The result says how many results left, how many characters they had, and where they are.

  Background:
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is not set
    And the policy "context-offload"

  @F-004 @BR-3.2-4 @BR-3.2-5 @BR-3.2-29 @BR-3.2-30
  Scenario: What was offloaded is counted, and its characters summed
    Given a user message of 50 characters
    And a result "a" of 300 characters from Bash
    And a result "b" of 99 characters from Bash
    And a result "c" of 400 characters from Read
    When the policy is applied
    Then the result reports 2 offloaded items
    And 700 characters are freed

  @F-004 @BR-3.2-30
  Scenario: The placeholders are not deducted from the characters freed
    Given a result "a" of 100 characters
    When the policy is applied
    Then 100 characters are freed
    And the characters freed, net of placeholders, add up

  @F-004 @BR-3.2-30
  Scenario: Of blocks the characters of their JSON are freed
    Given a result "a" of 300 characters in blocks from Bash
    And a result "b" of 200 characters from Bash
    When the policy is applied
    Then 500 characters are freed

  @F-004 @BR-3.2-6 @BR-3.2-31
  Scenario: The files are listed by their absolute paths
    Given a result "a" of 300 characters from Bash
    And a result "short" of 30 characters from Bash
    And a result "b" of 400 characters in blocks from Bash
    When the policy is applied
    Then the paths of the files are absolute
    And the result lists the files "tool-result-a.md" and "tool-result-b.md"

  @F-004 @BR-3.2-29 @BR-3.2-30 @BR-3.2-31
  Scenario: Where nothing is offloaded nothing is reported
    Given a result "short" of 99 characters from Bash
    When the policy is applied
    Then the result reports no offloaded item
    And no characters are freed
