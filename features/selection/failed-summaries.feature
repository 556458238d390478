Feature: A summary fails, and the prompt has to become shorter all the same
  The provider of the summary is overloaded, or its answer is refused by the check. The list stays as large as
  it was, each later turn fails in the same way, and the user can only begin a new session (openclaw #42182,
  DeepSeek-Reasonix #8119). A step with `when: {failed: summarise}` says what leaves in that turn instead.

  Background:
    Given the policy
      """
      model: {context_window: 8000}
      compaction: {keep_recent: {messages: 2}, summary: {attempts: 1, backoff: 0s}}
      steps:
        - {name: summarise, do: compact, when: {tokens: {at_least: 50%}}}
        - name: let-go
          do: drop
          when: {failed: summarise, tokens: {at_least: 55%}}
          select: {unit: group, types: ["*"], until: {tokens: {under: 40%}}}
      """
    And a user message that reads "Run the tests."

  Scenario: The oldest groups leave in the turn in which the summary fails
    Given 12 Bash results of 400 tokens
    And the summarizer fails every time saying "overloaded"
    When the policy is applied
    Then the history is not compacted
    And a warning says "overloaded"
    And 5 results are dropped
    And message 1 is kept

  Scenario: Nothing leaves but by the summary when it is made
    Given 12 Bash results of 400 tokens
    And the summarizer answers "The tests run."
    When the policy is applied
    Then the history is compacted
    And 0 results are dropped

  Scenario: Below its own gate it waits for the next failure
    Given 10 Bash results of 400 tokens
    And the summarizer fails every time
    When the policy is applied
    Then unchanged messages are the same objects
    Given 2 Bash results of 400 tokens
    When the policy is applied
    Then 5 results are dropped

  Scenario: The summary is asked for again when it is due again
    Given 12 Bash results of 400 tokens
    And the summarizer fails 1 time
    When the policy is applied
    Then 5 results are dropped
    Given 4 Bash results of 400 tokens
    When the policy is applied
    Then the history is compacted
    And the summarizer is asked 2 times

  Scenario: A summary that nobody asks for does not fail
    Given 3 Bash results of 400 tokens
    And the summarizer fails every time
    When the policy is applied
    Then unchanged messages are the same objects
    And the summarizer is asked no time

  Scenario: A summary that cannot hold what is pinned has failed without being asked for
    Given the policy
      """
      model: {context_window: 8000}
      items: {skill: {match: {type: user_message, text: {startswith: "Skill:"}}, pin: true}}
      compaction: {keep_recent: {messages: 2}, summary: {max_words: 3}}
      steps:
        - {name: summarise, do: compact, when: {tokens: {at_least: 50%}}}
        - name: let-go
          do: drop
          when: {failed: summarise}
          select: {unit: group, types: ["*"], until: {tokens: {under: 40%}}}
      """
    And the summarizer answers "The tests run."
    And a user message that reads "Skill: test what you have written"
    And 12 Bash results of 400 tokens
    When the policy is applied
    Then the summarizer is asked no time
    And 5 results are dropped
