Feature: The history of a coding agent gives way late
  When old results have left and the window is nearly full all the same, a summary takes the place
  of the history. The newest message stays, and the user's newest, so that the model has something
  to answer, and the files that the agent read last come back.

  Background:
    Given the policy "coding-agent"
    And the summarizer answers "The port is moved; the tests are next."

  Scenario Outline: It begins at 80 % of the window
    Given a user message of <before> tokens
    And a user message of 60,000 tokens
    When the policy is applied
    Then the history is <state>

    Examples:
      | before  | state         |
      | 99,999  | not compacted |
      | 100,000 | compacted     |
      | 100,001 | compacted     |

  Scenario: The request of a long turn stays behind the summary, before the newest result
    Given a user message of 160,000 tokens
    And the messages:
      | role      | text                         |
      | assistant | The port is moved.           |
      | user      | Now the tests, all of them.  |
    And a result "first" of 20 tokens from Bash
    And a result "second" of 20 tokens from Bash
    And a result "newest" of 20 tokens from Bash
    When the policy is applied
    Then the history is compacted
    And message 3 is kept
    And message 3 is the same object as before
    And the context has 5 messages
    And user and assistant take turns

  Scenario: A result that no model has seen stays with its call
    Given a user message of 160,000 tokens
    And a user message of 20 tokens
    And a result "new" of 20 tokens from Bash
    When the policy is applied
    Then the history is compacted
    And the result "new" is kept

  Scenario: Old results leave first, and that may be enough
    Given a session with 7 Bash results of 25,000 tokens
    When the policy is applied
    Then 4 results are offloaded
    And the history is not compacted

  Scenario Outline: The files that it read last come back, whichever tool it reads with
    Given the working directory has the file "port.py" that reads "PORT = 8081"
    And a user message of 160,000 tokens
    And the messages:
      """
      [
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "c1", "name": "<tool>", "input": {"<field>": "port.py"}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "c1", "content": "PORT = 8080"}
        ]},
        {"role": "user", "content": "Go on."}
      ]
      """
    When the policy is applied
    Then the file "port.py" is restored

    Examples:
      | tool                        | field         |
      | Read                        | file_path     |
      | read                        | path          |
      | read                        | filePath      |
      | read_file                   | path          |
      | read_file                   | file_path     |
      | read_file                   | absolute_path |
      | read_file                   | target_file   |
      | read_file                   | filePath      |
      | str_replace_based_edit_tool | path          |
      | str_replace_editor          | path          |
      | file_editor                 | path          |

  Scenario Outline: A file that it edited or wrote comes back as it is now
    Given the working directory has the file "port.py" that reads "PORT = 8081"
    And a user message of 160,000 tokens
    And the messages:
      """
      [
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "c1", "name": "<tool>", "input": {"<field>": "port.py"}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
        ]},
        {"role": "user", "content": "Go on."}
      ]
      """
    When the policy is applied
    Then the file "port.py" is restored

    Examples:
      | tool            | field     |
      | Edit            | file_path |
      | Write           | file_path |
      | write_to_file   | path      |
      | replace_in_file | path      |

  Scenario: A file over the limit comes back by the lines that it read
    Given the working directory has the file "large.py" of 60,000 characters
    And a user message of 160,000 tokens
    And the messages:
      """
      [
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "large.py", "offset": 1, "limit": 1}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "c1", "content": "x"}
        ]},
        {"role": "user", "content": "Go on."}
      ]
      """
    When the policy is applied
    Then the file "large.py" is restored

  Scenario Outline: What a tool that asks the user returns is the user's answer
    Given a result "asked" of 20 tokens from <tool>
    And a result "ran" of 20 tokens from Bash
    When the policy is applied
    Then the user answer is kept

    Examples:
      | tool                  |
      | AskUserQuestion       |
      | ExitPlanMode          |
      | ask_followup_question |
      | ask_questions         |
      | question              |
      | request_user_input    |
      | ask_user              |

  Scenario: What was read of a large file under two paths comes back together
    Given the policy
      """
      tools: {read_file: {reads_file: path, reads_lines: {first: offset, count: limit}}}
      compaction:
        keep_recent: {messages: 0}
        restore: {max_files: 5, large_files: windows, max_tokens_per_file: 120}
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "The summary."
    And the working directory has the file "a.py" that reads "line 1 has some words that count as tokens, and a few more of them\nline 2 has some words that count as tokens, and a few more of them\nline 3 has some words that count as tokens, and a few more of them\nline 4 has some words that count as tokens, and a few more of them\nline 5 has some words that count as tokens, and a few more of them\nline 6 has some words that count as tokens, and a few more of them\nline 7 has some words that count as tokens, and a few more of them\nline 8 has some words that count as tokens, and a few more of them\nline 9 has some words that count as tokens, and a few more of them\nline 10 has some words that count as tokens, and a few more of them\nline 11 has some words that count as tokens, and a few more of them\nline 12 has some words that count as tokens, and a few more of them"
    And the messages
      """
      [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "a.py", "offset": 2, "limit": 1}},
          {"type": "tool_use", "id": "b", "name": "read_file", "input": {"path": "./a.py", "offset": 9, "limit": 1}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": "x"},
          {"type": "tool_result", "tool_use_id": "b", "content": "y"}
        ]}
      ]
      """
    When the policy is applied
    Then the messages are
      """
      [
        {"role": "user", "content": "[Conversation compressed]\n\nThe summary."},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."},
        {"role": "user", "content": "[Restored after compact] ./a.py:\n[lines 2-2 of 12]\nline 2 has some words that count as tokens, and a few more of them\n[lines 9-9 of 12]\nline 9 has some words that count as tokens, and a few more of them"},
        {"role": "assistant", "content": "Noted, file content restored."}
      ]
      """
