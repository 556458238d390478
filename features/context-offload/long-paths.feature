Feature: A path as long as the content
  The size of a result alone says whether it leaves, not that of the path that takes its place.

  Background:
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is not set
    And the policy "context-offload"

  Scenario: A result leaves even if its placeholder is the longer text
    Given a result "toolu_an_id_that_makes_the_placeholder_longer_than_one_hundred_characters_1" of 100 characters
    When the policy is applied
    Then 1 result is offloaded
    And under 0 characters are freed net of placeholders
