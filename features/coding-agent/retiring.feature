Feature: Old results of a coding agent leave when that pays
  An edit changes what the provider has in its prompt cache, so a result leaves only when the cache
  has expired anyway or when much leaves at once. What leaves goes to a file that the agent can read
  again; what is recent or small stays.

  Background:
    Given the policy "coding-agent"

  Scenario: Old results stay while the cache lives and they are few
    Given a session with 9 Bash results of 3,000 tokens
    When the policy is applied
    Then no results are offloaded

  Scenario Outline: They leave together from 30,000 tokens that are freed
    Given a session with <count> Bash results of 10,000 tokens
    When the policy is applied
    Then <gone> results are offloaded

    Examples:
      | count | gone |
      | 6     | no   |
      | 7     | 4    |

  Scenario Outline: They leave after a pause that is longer than the cache lives
    Given a session with 7 Bash results of 3,000 tokens
    When the policy is applied
    And <pause> pass
    And the policy is applied again
    Then <gone> results are offloaded

    Examples:
      | pause       | gone |
      | 299 seconds | no   |
      | 301 seconds | 4    |

  Scenario: The three newest results stay, whichever tool they are from
    Given a session with 6 Bash results of 20,000 tokens
    And a Read result of 3,000 tokens
    And 2 Grep results of 10 tokens
    When the policy is applied
    Then 6 results are offloaded
    And every Read result is kept

  Scenario Outline: An old result leaves from 200 tokens on
    Given a result "old" of <size> tokens from Bash
    And 3 Bash results of 10 tokens
    When the policy is applied
    And 1 hour passes
    And the policy is applied again
    Then <count> results are offloaded

    Examples:
      | size | count |
      | 199  | no    |
      | 200  | 1     |

  Scenario: The provider keeps the list up to the oldest result that may leave
    Given a result "large" of 3,000 tokens from Bash
    When the policy is applied
    Then a cache breakpoint stands right before the result "large"
