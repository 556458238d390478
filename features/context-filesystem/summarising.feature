Feature: The last resort is a summary of everything
  When room was made type by type and the window is full all the same, a summary takes the place of
  the history. It is never offloaded itself.

  Background:
    Given the policy "context-filesystem"
    And the summarizer answers "Three files were read."

  @BR-4.2-7
  Scenario Outline: A summary follows when dropping was not enough
    Given an assistant message of <size> tokens
    And a user message of 60,000 tokens
    When the policy is applied
    Then the history is <state>

    Examples:
      | size    | state         |
      | 99,999  | not compacted |
      | 100,000 | compacted     |
      | 100,001 | compacted     |

  @BR-5-5 @BR-6.2-1
  Scenario: The summary itself never leaves before the next one
    Given an assistant message of 170,000 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then the history is compacted
    When the session continues for 3 turns
    And the policy is applied again
    Then the history is not compacted
    And 0 items are newly offloaded

  Scenario: What no model has seen yet stays behind the summary
    Given an assistant message of 170,000 tokens
    And a result "new" of 20 tokens from Bash
    When the policy is applied
    Then the history is compacted
    And the result "new" is kept
