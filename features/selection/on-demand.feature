Feature: Somebody asks for a compaction
  `Session.compact` is to a program what `/compact` is to a person. The gates of the `compact` step do
  not count, and a policy without such a step has the settings of its `compaction`.

  Background:
    Given the policy
      """
      compaction: {keep_recent: {messages: 2}, summary: {sections: []}}
      steps: [{name: summarise, do: compact, when: {messages: {at_least: 400}}}]
      """
    And 3 Bash results of 500 characters
    And a user message that reads "go on"

  Scenario: The history is replaced and saved
    When the session is compacted
    Then messages 1 to 4 are summarised
    And messages 5 to 7 are kept
    And the archive holds messages 1 to 4

  Scenario: The next model call is sent the same summary
    When the session is compacted
    Given a user message that reads "and now the tests"
    When the policy is applied
    Then the context has 5 messages

  Scenario: A person says what the summary must have
    Given the summarizer answers "The parser is done."
    When the session is compacted with the instructions "Keep the names of all tables."
    Then the summarizer receives "Keep the names of all tables."

  Scenario: A policy without a step compacts too
    Given the policy
      """
      compaction: {keep_recent: {messages: 2}}
      """
    And 3 Bash results of 500 characters
    When the session is compacted
    Then messages 1 to 4 are summarised

  Scenario: A summary that was refused as too large is asked for again on demand alone
    Given the policy
      """
      compaction: {summary: {must_shrink_to: 1%, attempts: 1, sections: []}}
      steps: [{name: summarise, do: compact, when: {messages: {at_least: 4}}}]
      """
    And the summarizer answers "It is told at length what was done, what was tried before, and what is left."
    And a user message of 50 tokens
    When the policy is applied
    And the policy is applied again
    Then the history is not compacted
    And the summarizer is asked one time
    When the session is compacted
    Then the summarizer is asked 2 times
