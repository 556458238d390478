Feature: One call compacts a list
  `compact_messages` is the preset `context-compact` without a policy file or a session. Its options
  say when a list is long, and how many files come back.

  Background:
    Given the policy "context-compact"
    And the summarizer answers "The summary."

  @UC-001 @BR-1.2-1 @BR-4.3-1 @BR-4.3-2
  Scenario Outline: The function replaces a long history by a summary
    Given a user message of 160,000 tokens
    When the function <function> is called
    Then the history is compacted
    And the messages are:
      """
      [
        {"role": "user", "content": "[Conversation compressed]\n\nThe summary."},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."}
      ]
      """
    And no warning is given

    Examples:
      | function               |
      | compact_messages       |
      | compact_messages_async |

  @F-007 @F-009
  Scenario Outline: The function returns the summary and the path of what it replaced
    Given the messages:
      | role      | text               |
      | system    | You are an agent.  |
      | user      | Rename the field.  |
      | assistant | The field is done. |
    When the function <function> is called with
      | threshold | 1 |
    Then the compaction reports the summary "The summary."
    And the archive holds messages 2 to 3
    And message 1 is the same object as before
    And the user message is summarised
    And the file "archive/compaction-001.json.zst" is JSON with
      | schema_version | 1.0 |
      | compaction     | 1   |

    Examples:
      | function               |
      | compact_messages       |
      | compact_messages_async |

  @UC-006 @F-009
  Scenario Outline: The function says why it replaces nothing of a long list
    Given the messages:
      | role   | text              |
      | system | You are an agent. |
    When the function <function> is called with
      | threshold | 1 |
    Then the same list is returned
    And 1 warning is given
    And a warning says "not compacted: there is nothing that it may replace"

    Examples:
      | function               |
      | compact_messages       |
      | compact_messages_async |

  @F-009 @BR-3.2-67
  Scenario Outline: The function returns a short list as it is
    Given a user message of 159,999 tokens
    When the function <function> is called
    Then the history is not compacted
    And the same list is returned
    And the summarizer is asked no time
    And the compaction reports
      | compacted_message_count | 0 |
      | restored_file_count     | 0 |

    Examples:
      | function               |
      | compact_messages       |
      | compact_messages_async |

  @F-002
  Scenario Outline: The option threshold says from how many tokens on a list is long
    Given a user message of 500 tokens
    When the function compact_messages is called with
      | threshold      | <threshold> |
      | context_window | 1000        |
    Then the history is <state>

    Examples:
      | threshold | state         |
      | 500       | compacted     |
      | 501       | not compacted |
      | 50%       | compacted     |
      | 51%       | not compacted |

  @F-005 @BR-3.2-29 @BR-3.2-43 @F-009
  Scenario Outline: The option max_restore_files limits how many files come back
    Given the working directory has the files "a.py", "b.py" and "c.py" of 10 tokens
    And the agent has read the files "a.py", "b.py" and "c.py"
    When the function <function> is called with
      | threshold         | 1      |
      | max_restore_files | <most> |
    Then the compaction reports
      | restored_file_count  | <count>  |
      | restored_token_count | <tokens> |

    Examples:
      | function               | most | count | tokens |
      | compact_messages       | 0    | 0     | 0      |
      | compact_messages       | 2    | 2     | 20     |
      | compact_messages_async | 2    | 2     | 20     |
      | compact_messages       | 3    | 3     | 30     |

  @F-005 @UC-004 @BR-3.2-35
  Scenario Outline: The option max_restore_tokens_per_file limits the size of each file
    Given the working directory has the file "small.py" of 10 tokens
    And the working directory has the file "large.py" of 20 tokens
    And the agent has read the files "small.py" and "large.py"
    When the function compact_messages is called with
      | threshold                   | 1      |
      | max_restore_tokens_per_file | <most> |
    Then the compaction reports
      | restored_file_count  | <count>  |
      | restored_token_count | <tokens> |

    Examples:
      | most | count | tokens |
      | 9    | 0     | 0      |
      | 19   | 1     | 10     |
      | 20   | 2     | 30     |

  @F-005 @BR-3.2-36
  Scenario Outline: The option max_restore_tokens_total limits the size of all files
    Given the working directory has the files "a.py", "b.py" and "c.py" of 10 tokens
    And the agent has read the files "a.py", "b.py" and "c.py"
    When the function compact_messages is called with
      | threshold                | 1      |
      | max_restore_tokens_total | <most> |
    Then the compaction reports
      | restored_file_count  | <count>  |
      | restored_token_count | <tokens> |

    Examples:
      | most | count | tokens |
      | 9    | 0     | 0      |
      | 29   | 2     | 20     |
      | 30   | 3     | 30     |

  @F-005 @BR-3.2-24 @BR-3.2-28 @F-006
  Scenario: The function brings back the files that were read last, the newest first
    Given the working directory has the file "a.py" that reads "a = 1"
    And the working directory has the file "b.py" that reads "b = 2"
    And the agent has read the files "a.py" and "b.py"
    When the function compact_messages is called with
      | threshold | 1 |
    Then the messages are:
      """
      [
        {"role": "user", "content": "[Conversation compressed]\n\nThe summary."},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."},
        {"role": "user", "content": "[Restored after compact] b.py:\nb = 2"},
        {"role": "assistant", "content": "Noted, file content restored."},
        {"role": "user", "content": "[Restored after compact] a.py:\na = 1"},
        {"role": "assistant", "content": "Noted, file content restored."}
      ]
      """

  @F-005 @BR-3.2-31
  Scenario: The option work_dir names the folder that files must be in
    Given the working directory has the files "src/a.py" and "b.py" of 10 tokens
    And the agent has read the files "a.py" and "../b.py"
    When the function compact_messages is called with
      | threshold | 1   |
      | work_dir  | src |
    Then the compaction reports
      | restored_file_count | 1 |
    And a warning says "'../b.py' is not restored"

  @F-004 @BR-3.2-19
  Scenario Outline: The option summary_check says whether an answer must be like a summary
    Given the model answers "All is done."
    And a user message of 160,000 tokens
    When the function <function> is called with
      | summary_check | <check> |
    Then the history is <state>

    Examples:
      | function               | check             | state         |
      | compact_messages       | null              | compacted     |
      | compact_messages       | false             | compacted     |
      | compact_messages       | true              | not compacted |
      | compact_messages_async | true              | not compacted |
      | compact_messages       | {sections: true}  | not compacted |
      | compact_messages       | {sections: false, min_words: 2} | compacted |

  @F-004 @BR-3.2-19
  Scenario Outline: Whatever the model answers to the function is the summary, unless it is empty
    Given the model answers "<answer>"
    And a user message of 160,000 tokens
    When the function compact_messages is called
    Then the history is <state>

    Examples:
      | answer                             | state         |
      | ok                                 | compacted     |
      | I'm sorry, I can't help with that. | compacted     |
      |                                    | not compacted |

  @UC-006 @F-008 @BR-3.2-18
  Scenario Outline: The function waits before it asks again for a summary that failed, longer each time
    Given the summarizer fails 2 times
    And a user message of 160,000 tokens
    When the function <function> is called
    Then the history is compacted
    And the summarizer is asked 3 times
    And the waits between the tries grow from at least 1 second

    Examples:
      | function               |
      | compact_messages       |
      | compact_messages_async |

  @F-008 @BR-4.1-2
  Scenario Outline: The option summary_timeout says how long the function tries
    Given the summarizer hangs
    And a user message of 160,000 tokens
    When the function <function> is called with
      | summary_timeout | 1s |
    Then the history is not compacted
    And the same list is returned
    And the summarizer is asked one time

    Examples:
      | function               |
      | compact_messages       |
      | compact_messages_async |

  @UC-006 @F-008
  Scenario Outline: The function returns the list when no summary is possible
    Given the summarizer fails every time
    And a user message of 160,000 tokens
    When the function <function> is called
    Then the same list is returned
    And 1 warning is given

    Examples:
      | function               |
      | compact_messages       |
      | compact_messages_async |
