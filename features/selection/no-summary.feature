Feature: History is replaced without a summary
  `summary: {by: none}` asks nobody. A text of the policy stands for the history.

  Background:
    Given the policy
      """
      items: {skill: {match: {type: user_message, text: {startswith: "Skill:"}}, pin: true}}
      compaction:
        summary: {by: none}
        keep_recent: {messages: 2}
        min_new: 0
        wording: {summary: "[Earlier messages are in {archive_path}]", summary_reply: ""}
      steps: [{name: trim, do: compact, when: {messages: {at_least: 6}}}]
      """

  Scenario: The text of the policy stands for the history, which is saved
    Given 3 Bash results of 500 characters
    And a user message that reads "go on"
    When the policy is applied
    Then messages 1 to 4 are summarised
    And messages 5 to 7 are kept
    And the context has 4 messages
    And the archive holds messages 1 to 4

  Scenario: What is pinned follows the text
    Given the caller passes the edited messages back
    And a user message that reads "Skill: never push"
    And 3 Bash results of 500 characters
    And a user message that reads "go on"
    When the policy is applied
    And the policy is applied
    Then the last compaction summary reads like "*Skill: never push*"
    Given 3 Bash results of 500 characters
    When the policy is applied
    Then the history is compacted
    When the policy is applied
    Then the last compaction summary reads like "*Skill: never push*"

  Scenario: The next compaction replaces the text too
    Given 3 Bash results of 500 characters
    When the policy is applied
    Given 3 Bash results of 500 characters
    When the policy is applied
    Then the context has 3 messages
