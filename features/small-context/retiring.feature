Feature: Old results leave at once, so that the context stays small
  What the agent read a while ago, and that is large, goes to a file that it can read again. What
  is recent or small stays, so that the agent goes on working with what it has just seen.

  Background:
    Given the policy "small-context"

  Scenario: The five newest results stay
    Given a session with 7 Bash results of 3,000 tokens
    When the policy is applied
    Then 2 results are offloaded
    And the first result is offloaded
    And the 3rd result is kept because "recent"
    And the last result is kept because "recent"

  Scenario: The five are counted over all tools
    Given a session with 3 Bash results of 3,000 tokens
    And 4 Read results of 3,000 tokens
    When the policy is applied
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
    Then only the first result is offloaded
    When the model reads the file of the first result with Read
    And the policy is applied again
    Then the 2nd Bash result is newly offloaded
    And every Read result is kept

  Scenario Outline: An old result leaves from 800 tokens on
    Given a result "old" of <size> tokens from Bash
    And 5 Bash results of 10 tokens
    When the policy is applied
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
    Then the same list is returned

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
    Given a session with 6 Bash results of 3,000 tokens
    When the policy is applied
    Then 1 result is offloaded
    When the session continues for 3 turns with a Read result of 3,000 tokens each
    Then in every turn the prefix is unchanged up to the first new decision
    And 4 results are offloaded

  Scenario: A full disk leaves the result where it is
    Given a session with 6 Bash results of 3,000 tokens
    When the disk is full
    And the policy is applied
    Then the same list is returned
    And 1 warning is given
