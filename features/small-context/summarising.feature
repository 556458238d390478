Feature: The history of a small context gives way late
  When old results have left and the window is nearly full all the same, a summary takes the place
  of the history, and the request stays with it.

  Background:
    Given the policy "small-context"
    And the summarizer answers "The port is moved; the tests are next."

  Scenario: It begins at 80 % of the window
    Given a user message of 100,000 tokens
    And a user message of 60,000 tokens
    When the policy is applied
    Then the history is compacted

  Scenario: The newest message stays behind the summary
    Given a user message of 160,000 tokens
    And the messages:
      | role      | text               |
      | assistant | The port is moved. |
      | user      | Now the tests.     |
    When the policy is applied
    Then the messages are:
      """
      [
        {"role": "user", "content": "[Conversation compressed]\n\nThe port is moved; the tests are next."},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."},
        {"role": "user", "content": "Now the tests."}
      ]
      """

  Scenario: Old results leave first, and that may be enough
    Given a session with 7 Bash results of 25,000 tokens
    When the policy is applied
    Then 2 results are offloaded
    And the history is not compacted
