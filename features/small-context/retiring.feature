Feature: Old results leave as soon as that pays, so that the context stays small
  What the agent read a while ago, and that is large, goes to a file that it can read again: at once
  where that costs little, else when the prompt cache has expired or calls enough were made, and
  whatever it costs when the window fills. What is recent or small stays, so that the agent goes on
  working with what it has just seen.

  Background:
    Given the policy "small-context"

  Scenario: An old result leaves at once where little behind it is sent anew
    Given a result "old" of 3,000 tokens from Bash
    And 5 Bash results of 10 tokens
    When the policy is applied
    Then only the result "old" is offloaded

  Scenario: It waits where much behind it would be sent anew for few later calls
    Given a session with 7 Bash results of 3,000 tokens
    When the policy is applied
    Then the gate "pays_back" of the step "retire-old-results" stays closed because "7"
    And no results are offloaded

  Scenario: It waits no longer when the session is long enough to pay for it
    Given a session with 7 Bash results of 3,000 tokens
    When the policy is applied
    And the session continues for 20 turns with a Bash result of 3,000 tokens each
    Then at least 10 results are offloaded

  Scenario Outline: It leaves whatever that costs from 60 % of the window on
    Given a user message of <size> tokens
    And 7 Bash results of 3,000 tokens
    When the policy is applied
    Then <count> results are offloaded

    Examples:
      | size   | count |
      | 98,000 | no    |
      | 99,000 | 2     |

  Scenario Outline: It leaves after a pause that is longer than the cache lives
    Given a session with 7 Bash results of 3,000 tokens
    When the policy is applied
    And <pause> pass
    And the policy is applied again
    Then <count> results are offloaded

    Examples:
      | pause       | count |
      | 299 seconds | no    |
      | 301 seconds | 2     |

  Scenario: The five newest results stay
    Given a session with 7 Bash results of 3,000 tokens
    When the policy is applied
    And 1 hour passes
    And the policy is applied again
    Then 2 results are offloaded
    And the first result is offloaded
    And the 3rd result is kept because "recent"
    And the last result is kept because "recent"

  Scenario: The five are counted over all tools
    Given a session with 3 Bash results of 3,000 tokens
    And 4 Read results of 3,000 tokens
    When the policy is applied
    And 1 hour passes
    And the policy is applied again
    Then 2 results are offloaded
    And every Read result is kept

  Scenario: Small results count among the five
    Given a result "old" of 3,000 tokens from Bash
    And 5 Grep results of 10 tokens
    When the policy is applied
    Then only the result "old" is offloaded

  Scenario: What the agent read again counts among the five
    Given a session with 6 Bash results of 3,000 tokens
    When the policy is applied
    And 1 hour passes
    And the policy is applied again
    Then only the first result is offloaded
    When the model reads the file of the first result with Read
    And 1 hour passes
    And the policy is applied again
    Then the 2nd Bash result is newly offloaded
    And every Read result is kept

  Scenario Outline: An old result leaves from 800 tokens on
    Given a result "old" of <size> tokens from Bash
    And 5 Bash results of 10 tokens
    When the policy is applied
    And 1 hour passes
    And the policy is applied again
    Then <count> results are offloaded

    Examples:
      | size | count |
      | 799  | no    |
      | 800  | 1     |
      | 801  | 1     |

  Scenario: What the user and the agent wrote stays, however long
    Given a user message of 9000 characters
    And an assistant message of 9000 characters
    And a session with 6 Bash results of 10 tokens
    When the policy is applied
    And 1 hour passes
    And the policy is applied again
    Then nothing is offloaded

  Scenario: Each result has its own file, which holds all of it
    Given a result "a" of 3,000 tokens from Bash
    And a result "b" of 2,000 tokens from Read
    And 5 Bash results of 10 tokens
    When the policy is applied
    Then only the files "tool_result/Bash/a.md" and "tool_result/Read/b.md" are written
    And the file of every offloaded item holds its original content

  Scenario: The agent is told what is gone, and where to read it
    Given a result "a" of 3,000 tokens from Bash
    And 5 Bash results of 10 tokens
    When the policy is applied
    Then the result "a" reads as follows
      """
      [Offloaded: Bash result, 1 lines, 3000 tokens]
      Path: {path}
      Read that file when you need it again.
      """

  Scenario: Nothing is decided twice, and what the provider has cached stays
    Given the policy
      """
      extends: small-context
      model: {cache: {breakpoints: keep}}
      """
    And a session with 6 Bash results of 3,000 tokens
    When the policy is applied
    And 1 hour passes
    And the policy is applied again
    Then 1 result is offloaded
    When the session continues for 3 turns with a Read result of 3,000 tokens each
    Then in every turn the prefix is unchanged up to the first new decision
    And 1 result is offloaded

  Scenario: A full disk leaves the result where it is
    Given a session with 6 Bash results of 3,000 tokens
    When the policy is applied
    And the disk is full
    And 1 hour passes
    And the policy is applied again
    Then every Bash result is kept
    And 1 warning is given
