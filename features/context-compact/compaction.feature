Feature: A long history gives way to a summary

  Background:
    Given the policy "context-compact"
    And the summarizer answers "The API is renamed; the tests are next."

  @UC-001 @F-004 @F-005 @F-006 @BR-1.2-1 @BR-1.2-2 @BR-2.2-1
  Scenario: The history gives way to a summary and the files read last
    Given the working directory has the file "src/api.py" that reads "def rename(): ..."
    And the messages:
      | role      | text                 |
      | system    | You are an agent.    |
      | user      | Rename the API.      |
    And the agent has read the file "src/api.py"
    And an assistant message of 160,000 tokens
    When the policy is applied
    Then the history is compacted
    And the messages are:
      """
      [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "[Conversation compressed]\n\nThe API is renamed; the tests are next."},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."},
        {"role": "user", "content": "[Restored after compact] src/api.py:\ndef rename(): ..."},
        {"role": "assistant", "content": "Noted, file content restored."}
      ]
      """
    And the input is not changed

  @UC-001 @F-001 @F-002 @BR-1.3-1
  Scenario Outline: It begins at 80 % of the window, counted exactly
    Given a user message of <size> tokens
    When the policy is applied
    Then the history is <state>

    Examples:
      | size    | state         |
      | 159,999 | not compacted |
      | 160,000 | compacted     |
      | 160,001 | compacted     |

  @F-002
  Scenario: Below the limit nothing is done, and no folder is made
    Given a user message of 159,999 tokens
    When the policy is applied
    Then the same list is returned
    And the summarizer is asked no time
    And no folder is made

  @F-002
  Scenario: A smaller window is full sooner
    Given the policy:
      """
      extends: context-compact
      model: {context_window: 1000}
      """
    And a user message of 800 tokens
    When the policy is applied
    Then the history is compacted

  @F-002
  Scenario: It may begin at a number of tokens
    Given the policy:
      """
      extends: context-compact
      steps:
        - {name: summarise, do: compact, when: {tokens: {at_least: 300}}}
      """
    And a user message of 300 tokens
    When the policy is applied
    Then the history is compacted

  @F-001
  Scenario: Chinese text counts by its tokens too
    Given the policy:
      """
      extends: context-compact
      model: {context_window: 10}
      """
    And the messages:
      | role | text                                 |
      | user | 请把接口改名,然后运行所有的测试用例。 |
    When the policy is applied
    Then the history is compacted

  @UC-002 @BR-3.2-38 @BR-3.2-56 @BR-3.2-58
  Scenario: Where no file was read, none comes back
    Given the working directory has the file "a.py" of 10 tokens
    And a session with 4 Bash results of 40,000 tokens
    When the policy is applied
    Then the history is compacted
    And no file is restored
    And the context has 2 messages

  @UC-005
  Scenario: A second compaction replaces the first one's summary and files as well
    Given the working directory has the file "old.py" that reads "old"
    And the working directory has the file "new.py" that reads "new"
    And the caller passes the edited messages back
    And the messages:
      | role   | text              |
      | system | You are an agent. |
    And the agent has read the file "old.py"
    And a user message of 160,000 tokens
    When the policy is applied
    Then the file "old.py" is restored
    Given the agent has read the file "new.py"
    And a user message of 160,000 tokens
    And the summarizer answers "Both rounds."
    When the policy is applied again
    Then the history is compacted
    And the summarizer sees "The API is renamed; the tests are next."
    And the summarizer does not see "Understood. I have the context"
    And the summarizer does not see "[Restored after compact]"
    And the files "new.py" and "old.py" are restored
    And the messages are:
      """
      [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "[Conversation compressed]\n\nBoth rounds."},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."},
        {"role": "user", "content": "[Restored after compact] new.py:\nnew"},
        {"role": "assistant", "content": "Noted, file content restored."},
        {"role": "user", "content": "[Restored after compact] old.py:\nold"},
        {"role": "assistant", "content": "Noted, file content restored."}
      ]
      """
