Feature: What is replaced, and what stays

  Background:
    Given the policy:
      """
      extends: context-compact
      steps:
        - {name: summarise, do: compact, when: {tokens: {at_least: 0}}}
      """
    And the summarizer answers "The summary."

  @F-003 @BR-3.2-1 @BR-3.2-2 @BR-3.2-3 @BR-3.2-4 @BR-5.3-3
  Scenario: The system messages at the beginning stay, all behind them is replaced
    Given the messages:
      | role      | text              |
      | system    | You are an agent. |
      | system    | Be brief.         |
      | user      | Rename the API.   |
      | assistant | Done.             |
      | user      | And the tests?    |
    When the policy is applied
    Then messages 1 to 2 are kept
    And only messages 3 to 5 are summarised
    And messages 1 to 2 are the same objects as before
    And the context has 4 messages

  @F-003 @BR-3.2-3
  Scenario: A developer message is a system message
    Given the messages have the OpenAI shape
    And the messages:
      | role      | text              |
      | developer | You are an agent. |
      | user      | Rename the API.   |
    When the policy is applied
    Then message 1 is kept
    And only message 2 is summarised

  @F-003 @BR-3.2-3
  Scenario: A system message further behind is replaced as well
    Given the messages:
      | role   | text              |
      | system | You are an agent. |
      | user   | Rename the API.   |
      | system | Be brief.         |
    When the policy is applied
    Then only messages 2 to 3 are summarised

  @F-003 @BR-1.3-5 @BR-3.2-5
  Scenario: No message at the end stays, however recent it is
    Given a session with 6 Bash results of 100 tokens
    When the policy is applied
    Then messages 1 to 13 are summarised
    And the context has 2 messages

  @F-003 @BR-1.3-5 @BR-3.2-5 @BR-4.4-3
  Scenario: A ratio for a tail is no word of the language
    Given the policy:
      """
      extends: context-compact
      compaction: {tailRetentionRatio: 0.2}
      """
    And a user message of 10 tokens
    When the policy is applied
    Then it fails with a PolicyError that says "unknown key"

  @F-003 @BR-3.2-6 @BR-3.2-57
  Scenario: Without a system message all is replaced, and the summary comes first
    Given the messages:
      | role      | text            |
      | user      | Rename the API. |
      | assistant | Done.           |
    When the policy is applied
    Then only messages 1 to 2 are summarised
    And the messages are:
      """
      [
        {"role": "user", "content": "[Conversation compressed]\n\nThe summary."},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."}
      ]
      """

  @F-003 @BR-3.2-7 @BR-3.2-20
  Scenario: Of system messages alone there is nothing to replace
    Given the messages:
      | role   | text              |
      | system | You are an agent. |
      | system | Be brief.         |
    When the policy is applied
    Then the history is not compacted
    And the same list is returned
    And the summarizer is asked no time

  @F-003 @BR-3.2-8 @BR-3.2-20
  Scenario: An empty list is returned as it is
    Given no messages
    When the policy is applied
    Then the history is not compacted
    And the same list is returned
    And the summarizer is asked no time

  @F-003 @BR-3.2-9
  Scenario: A single message is replaced
    Given the messages:
      | role   | text              |
      | system | You are an agent. |
      | user   | Rename the API.   |
    When the policy is applied
    Then only message 2 is summarised

  @F-003 @BR-3.2-10
  Scenario: A plan alone asks for nothing and writes nothing
    Given a user message of 10 tokens
    When only a plan is made
    Then message 1 is summarised
    And the summarizer is asked no time
    And no folder is made

  @F-003
  Scenario: In the chat shape of OpenAI it is the same
    Given the messages have the OpenAI shape
    And the messages:
      | role   | text              |
      | system | You are an agent. |
      | user   | Rename the API.   |
    And 2 parallel Bash results of 100 tokens
    When the policy is applied
    Then only messages 2 to 5 are summarised
    And user and assistant take turns

  @F-003
  Scenario: A call that is not answered yet stays, with all behind it
    Given the messages:
      | role      | type | id | text            |
      | user      |      |    | Rename the API. |
      | assistant |      |    | I look.         |
      |           | call | c1 |                 |
    When the policy is applied
    Then only messages 1 to 2 are summarised
    And message 3 is the same object as before
    And user and assistant take turns

  @F-003
  Scenario: Thinking and images are replaced like all else
    Given the messages:
      | role      | type     | text     |
      | user      | image    |          |
      | and       | text     | See it?  |
      | assistant | thinking | Hm.      |
      | and       | text     | Yes.     |
    When the policy is applied
    Then only messages 1 to 2 are summarised
    And the summarizer sees "Attached image"
    And the summarizer does not see "Hm."
