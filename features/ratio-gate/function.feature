Feature: The function obeys the ratio
  `offload_tool_results` takes the ratio from the environment, as the preset does.

  Background:
    Given the policy "context-offload"
    And a user message of 700 characters
    And a result "a" of 300 characters

  @F-006 @BR-3.2-4
  Scenario Outline: The function offloads from the ratio on that the environment gives
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is "<ratio>"
    When the function offload_tool_results is called
    Then the result reports <count> offloaded item

    Examples:
      | ratio | count |
      | 0.3   | 1     |
      | 0.31  | no    |
