Feature: The new list, the archive and the report

  Background:
    Given the policy:
      """
      extends: context-compact
      steps:
        - {name: summarise, do: compact, when: {tokens: {at_least: 1}}}
      """
    And the summarizer answers "The summary."

  @F-006 @BR-3.2-48 @BR-3.2-49 @BR-3.2-50 @BR-3.2-51 @BR-3.2-52 @BR-3.2-54
  Scenario: The head, the summary, the files: each with the assistant's reply
    Given the messages:
      | role   | text              |
      | system | You are an agent. |
    And the working directory has the files "a.py" and "b.py" that read "x = 1"
    And the agent has read the files "a.py" and "b.py"
    When the policy is applied
    Then the messages are:
      """
      [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "[Conversation compressed]\n\nThe summary."},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."},
        {"role": "user", "content": "[Restored after compact] b.py:\nx = 1"},
        {"role": "assistant", "content": "Noted, file content restored."},
        {"role": "user", "content": "[Restored after compact] a.py:\nx = 1"},
        {"role": "assistant", "content": "Noted, file content restored."}
      ]
      """
    And user and assistant take turns

  @F-006 @BR-3.2-53 @BR-3.2-59
  Scenario: A new list is returned, and what was given stays as it was
    Given the messages:
      | role   | text              |
      | system | You are an agent. |
    And a session with 2 Bash results of 100 tokens
    When the policy is applied
    Then the input is not changed
    And changed messages are deep copies
    And message 1 is the same object as before

  @F-006
  Scenario: What is in braces in a summary or a file stays as it is
    Given the summarizer answers "Use {path} and {{x}}."
    And the working directory has the file "a.py" that reads "f'{summary}'"
    And the agent has read the file "a.py"
    When the policy is applied
    Then the messages are:
      """
      [
        {"role": "user", "content": "[Conversation compressed]\n\nUse {path} and {{x}}."},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."},
        {"role": "user", "content": "[Restored after compact] a.py:\nf'{summary}'"},
        {"role": "assistant", "content": "Noted, file content restored."}
      ]
      """

  @F-007 @BR-1.3-2 @BR-4.2-2
  Scenario: The replaced messages are saved whole before anything is replaced
    Given the policy "context-compact"
    And the messages:
      | role      | text              |
      | system    | You are an agent. |
      | user      | 请修改接口。       |
      | assistant | Done.             |
    And 2 parallel Bash results of 80,000 tokens in blocks
    When the policy is applied
    Then the archive holds messages 2 to 5

  @F-007
  Scenario: The archive names its version and its compaction
    Given a user message of 10 tokens
    When the policy is applied
    Then the compaction reports the summary "The summary."
    And the file "archive/compaction-001.json.zst" is JSON with
      | schema_version | 1.0 |
      | compaction     | 1   |

  @F-007 @BR-1.3-2
  Scenario: What cannot be saved is not replaced
    Given a user message of 10 tokens
    And the disk is full
    When the policy is applied
    Then the history is not compacted
    And the same list is returned
    And a warning says "No space left"

  @F-007
  Scenario: Each compaction has an archive of its own
    Given the caller passes the edited messages back
    And a user message of 10 tokens
    When the policy is applied
    And a result of 100 characters arrives from Bash
    And the policy is applied
    Then the archive holds messages 1 to 4
    And only the files "archive/compaction-001.json.zst" and "archive/compaction-002.json.zst" are written

  @F-007
  Scenario: A policy may save nothing
    Given the policy:
      """
      extends: context-compact
      compaction: {archive: false}
      steps:
        - {name: summarise, do: compact, when: {tokens: {at_least: 1}}}
      """
    And a user message of 10 tokens
    When the policy is applied
    Then the history is compacted
    And no archive is written

  @F-009 @BR-3.2-60 @BR-3.2-61 @BR-3.2-62 @BR-3.2-63 @BR-3.2-64 @BR-3.2-65 @BR-3.2-66 @BR-4.3-4
  Scenario: What was compacted is reported
    Given the messages:
      | role   | size       |
      | system | 10 tokens  |
      | user   | 190 tokens |
    And the working directory has the files "a.py" and "b.py" of 5 tokens
    And the messages:
      """
      [
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "a.py"}},
          {"type": "tool_use", "id": "b", "name": "read_file", "input": {"path": "b.py"}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": ""},
          {"type": "tool_result", "tool_use_id": "b", "content": ""}
        ]}
      ]
      """
    When the policy is applied
    Then the compaction reports:
      | original_token_count    | over 200  |
      | compacted_token_count   | under 100 |
      | compaction_ratio        | under 0.5 |
      | compacted_message_count | 3         |
      | retained_message_count  | 1         |
      | restored_file_count     | 2         |
      | restored_token_count    | 10        |

  @F-009 @BR-3.2-60 @BR-3.2-61 @BR-3.2-62
  Scenario: The tokens are those of the messages before and after
    Given a user message of 200 tokens
    When the policy is applied
    Then the compaction reports:
      | original_token_count  | 200  |
      | compacted_token_count | 22   |
      | compaction_ratio      | 0.11 |

  @F-009 @BR-3.2-68
  Scenario: Where no file came back, none is reported
    Given a user message of 10 tokens
    When the policy is applied
    Then the compaction reports:
      | restored_file_count  | 0 |
      | restored_token_count | 0 |

  @F-009 @BR-3.2-67
  Scenario: Where nothing was compacted, everything is 0
    Given no messages
    When the policy is applied
    Then the compaction reports:
      | original_token_count    | 0 |
      | compacted_token_count   | 0 |
      | compaction_ratio        | 0 |
      | compacted_message_count | 0 |
      | retained_message_count  | 0 |
      | restored_file_count     | 0 |
      | restored_token_count    | 0 |

  @F-009 @BR-3.2-69
  Scenario: The same list in another session is reported alike
    Given a user message of 200 tokens
    When the policy is applied
    Given the session "another"
    When the policy is applied
    Then the compaction reports:
      | original_token_count | 200 |

  @F-009 @BR-3.2-60 @BR-3.2-61
  Scenario: The tokens of the head count before and after
    Given the messages:
      | role   | size       |
      | system | 10 tokens  |
      | user   | 200 tokens |
    When the policy is applied
    Then the compaction reports:
      | original_token_count  | 210 |
      | compacted_token_count | 32  |

  @F-007 @BR-1.3-2
  Scenario: The archive holds the messages as they were given, not as another step left them
    Given the policy:
      """
      items: {tool_result: {offload: true}}
      placeholder: "[{relative_path}]"
      compaction: {archive: true, keep_recent: {messages: 0}}
      steps:
        - {name: retire, do: offload}
        - {name: summarise, do: compact}
      """
    And a user message of 10 tokens
    And a result "a" of 300 characters from Bash
    When the policy is applied
    Then the archive holds messages 1 to 3
