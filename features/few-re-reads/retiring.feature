Feature: Results leave so seldom that hardly one is read again
  The seven newest results stay whatever happens, and older ones leave only when that frees a lot.

  Background:
    Given the policy "few-re-reads"

  Scenario Outline: Old results leave together from 50,000 tokens that are freed
    Given a session with <count> Bash results of 10,000 tokens
    When the policy is applied
    Then <gone> results are offloaded
    And the last result is kept

    Examples:
      | count | gone |
      | 12    | no   |
      | 13    | 6    |

  Scenario: A pause alone removes nothing
    Given a session with 9 Bash results of 3,000 tokens
    When the policy is applied
    And 1 hour passes
    And the policy is applied again
    Then no results are offloaded

  Scenario Outline: An old result leaves from 200 tokens on
    Given a session with 6 Bash results of 10,000 tokens
    And a result "small" of <size> tokens from Bash
    And 7 Bash results of 10 tokens
    When the policy is applied
    Then the result "small" is <state>

    Examples:
      | size | state     |
      | 199  | kept      |
      | 200  | offloaded |

  Scenario: A summary begins at 80 % of the window
    Given the summarizer answers "The port is moved; the tests are next."
    And a user message of 100,000 tokens
    And a user message of 60,000 tokens
    When the policy is applied
    Then the history is compacted
