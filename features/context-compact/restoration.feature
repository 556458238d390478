Feature: The files that were read last come back

  Background:
    Given the policy "context-compact"
    And the summarizer answers "The summary."
    And a user message of 160,000 tokens

  @F-005 @BR-3.2-22 @BR-3.2-24 @BR-3.2-25 @BR-3.2-28 @BR-3.2-33 @BR-3.2-37 @BR-5.1-4
  Scenario: The files that the agent has read come back, the newest first, as they are now
    Given the working directory has the file "a.py" that reads "a = 1"
    And the working directory has the file "src/b.py" that reads "b = 2"
    And the agent has read the files "a.py" and "src/b.py"
    When the working directory has the file "a.py" that reads "a = 3"
    And the policy is applied
    Then the files "src/b.py" and "a.py" are restored
    And the summarizer receives "do not repeat their contents:\n- src/b.py\n- a.py"
    And the messages are:
      """
      [
        {"role": "user", "content": "[Conversation compressed]\n\nThe summary."},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."},
        {"role": "user", "content": "[Restored after compact] src/b.py:\nb = 2"},
        {"role": "assistant", "content": "Noted, file content restored."},
        {"role": "user", "content": "[Restored after compact] a.py:\na = 3"},
        {"role": "assistant", "content": "Noted, file content restored."}
      ]
      """

  @F-005 @BR-1.3-4 @BR-3.2-26
  Scenario: Only what read_file has read comes back
    Given the working directory has the files "a.py" and "b.py" of 10 tokens
    And the agent has read the file "a.py" with open_file
    And the agent has read the file "b.py"
    When the policy is applied
    Then the file "b.py" is restored

  @F-005 @BR-5.3-4 @BR-3.2-27
  Scenario: A policy may name another tool and its field
    Given the policy:
      """
      extends: context-compact
      tools: {Read: {reads_file: file_path}}
      """
    And the working directory has the file "a.py" of 10 tokens
    And the agent has read the file "a.py" with Read
    When the policy is applied
    Then the file "a.py" is restored

  @F-005 @BR-3.2-25 @BR-3.2-28
  Scenario: Of files that one message reads, the one that its last call names comes first
    Given the working directory has the files "a.py", "b.py" and "c.py" of 10 tokens
    And the messages:
      """
      [
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "a.py"}},
          {"type": "tool_use", "id": "b", "name": "read_file", "input": {"path": "b.py"}},
          {"type": "tool_use", "id": "c", "name": "read_file", "input": {"path": "c.py"}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": "x"},
          {"type": "tool_result", "tool_use_id": "b", "content": "y"},
          {"type": "tool_result", "tool_use_id": "c", "content": "z"}
        ]}
      ]
      """
    When the policy is applied
    Then the files "c.py", "b.py" and "a.py" are restored

  @F-005 @BR-3.2-39 @BR-3.2-40
  Scenario Outline: The warning has the words of a file reader that raises, and the summary stays
    Given the working directory has the file "a.py" of 10 tokens
    And the agent has read the file "a.py"
    When the function <function> is called with
      | file_reader | <reader> |
    Then the history is compacted
    And the compaction reports
      | restored_file_count | 0 |
    And a warning says "'a.py' is not restored: the archive is sealed"

    Examples:
      | function               | reader  |
      | compact_messages       | raising |
      | compact_messages_async | raising |
      | compact_messages       | lost    |
      | compact_messages_async | lost    |

  @F-005 @BR-3.2-39 @BR-3.2-40
  Scenario: A text that UTF-8 cannot encode does not come back
    Given the working directory has the file "a.py" of 10 tokens
    And the agent has read the file "a.py"
    When the function compact_messages is called with
      | file_reader | half a character |
    Then the history is compacted
    And the compaction reports
      | restored_file_count | 0 |
    And a warning says "'a.py' is not restored: it holds a character that cannot be encoded as UTF-8"

  @F-005 @BR-3.2-40 @BR-4.1-2
  Scenario: A file that is not read in time does not come back, and the summary stays
    Given the working directory has the file "a.py" of 10 tokens
    And the agent has read the file "a.py"
    When the function compact_messages is called with
      | file_reader     | hanging |
      | summary_timeout | 1s      |
    Then the history is compacted
    And the compaction reports
      | restored_file_count | 0 |
    And a warning says "'a.py' is not restored: the files were not read within 2 s"

  @F-005
  Scenario: Where no tool is known to have read a file, a warning names the option
    Given the working directory has the file "a.py" of 10 tokens
    And the agent has read the file "a.py" with open_file
    When the policy is applied
    Then no file is restored
    And a warning says "`tools: {open_file: {reads_file: path}}`"

  @F-005 @BR-5.3-4
  Scenario: A path in another field than the tool's is none
    Given the working directory has the files "a.py" and "b.py" of 10 tokens
    And the messages:
      """
      [
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "a.py", "limit": 5}},
          {"type": "tool_use", "id": "b", "name": "read_file", "input": {"file": "b.py"}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": "x"},
          {"type": "tool_result", "tool_use_id": "b", "content": "y"}
        ]}
      ]
      """
    When the policy is applied
    Then the file "a.py" is restored

  @F-005 @BR-3.2-25
  Scenario: A call in a message of the user does not count
    Given the working directory has the files "a.py" and "b.py" of 10 tokens
    And the messages:
      """
      [
        {"role": "user", "content": [
          {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "a.py"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "b", "name": "read_file", "input": {"path": "b.py"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": "y"}]}
      ]
      """
    When the policy is applied
    Then the file "b.py" is restored
    And no warning is given

  @F-005 @BR-3.2-25
  Scenario: In the chat shape of OpenAI calls count as well
    Given the messages have the OpenAI shape
    And the working directory has the file "a.py" of 10 tokens
    And a user message of 10 tokens
    And the agent has read the file "a.py"
    When the policy is applied
    Then the file "a.py" is restored

  @F-005 @BR-3.2-27 @BR-3.2-45
  Scenario: A file that was read several times comes back once, by its last access
    Given the working directory has the files "a.py" and "b.py" of 10 tokens
    And the agent has read the files "a.py", "b.py" and "a.py"
    When the policy is applied
    Then the files "a.py" and "b.py" are restored

  @F-005 @BR-3.2-27
  Scenario: Two paths to one file are one file
    Given the working directory has the file "a.py" of 10 tokens
    And the agent has read the files "a.py" and "./src/../a.py"
    When the policy is applied
    Then the file "./src/../a.py" is restored

  @F-005 @BR-3.2-29 @BR-4.3-3
  Scenario: The five files read last come back
    Given the working directory has the files "1.py", "2.py", "3.py", "4.py", "5.py" and "6.py" of 10 tokens
    And the agent has read the files "1.py", "2.py", "3.py", "4.py", "5.py" and "6.py"
    When the policy is applied
    Then the files "6.py", "5.py", "4.py", "3.py" and "2.py" are restored
    And no warning is given

  @F-005 @BR-3.2-23 @BR-3.2-29 @BR-3.2-43
  Scenario Outline: Another number of files may come back, or none
    Given the policy:
      """
      extends: context-compact
      compaction: {restore: {max_files: <most>}}
      """
    And the working directory has the files "a.py" and "b.py" of 10 tokens
    And the agent has read the files "a.py" and "b.py"
    When the policy is applied
    Then <outcome>

    Examples:
      | most | outcome                   |
      | 0    | no file is restored       |
      | 1    | the file "b.py" is restored |

  @F-005 @UC-003 @BR-3.2-29 @BR-3.2-32 @BR-3.2-39
  Scenario: A file that is gone is skipped, and no older one takes its place
    Given the policy:
      """
      extends: context-compact
      compaction: {restore: {max_files: 2}}
      """
    And the working directory has the files "a.py", "b.py" and "c.py" of 10 tokens
    And the agent has read the files "a.py", "b.py" and "c.py"
    When the file "c.py" is deleted from the working directory
    And the policy is applied
    Then the file "b.py" is restored
    And 1 warning is given
    And a warning says "'c.py' is not restored: there is no such file"

  @F-005 @UC-004 @BR-3.2-34 @BR-3.2-35 @BR-4.3-3
  Scenario Outline: A file of more than 5000 tokens is skipped, the others are not
    Given the working directory has the file "large.py" of <size> tokens
    And the working directory has the file "small.py" of 10 tokens
    And the agent has read the files "small.py" and "large.py"
    When the policy is applied
    Then <outcome>

    Examples:
      | size | outcome                                         |
      | 5000 | the files "large.py" and "small.py" are restored |
      | 5001 | the file "small.py" is restored                 |

  @F-005 @BR-3.2-35
  Scenario: Why a large file did not come back is said
    Given the working directory has the file "large.py" of 5001 tokens
    And the agent has read the file "large.py"
    When the policy is applied
    Then a warning says "'large.py' is not restored: its 5001 tokens are more than 5000"

  @F-005 @BR-3.2-35 @BR-3.2-40
  Scenario: A file with more bytes than its tokens can have is not read
    Given the policy:
      """
      extends: context-compact
      compaction: {restore: {max_tokens_per_file: 10}}
      """
    And the working directory has the file "large.py" of 2,000 characters
    And the agent has read the file "large.py"
    When the policy is applied
    Then no file is restored
    And a warning says "'large.py' is not restored: it is too large, 2000 bytes"

  @F-005 @BR-3.2-42
  Scenario: Where every file is too large, none comes back
    Given the working directory has the file "a.py" of 5001 tokens
    And the working directory has the file "b.py" of 6000 tokens
    And the agent has read the files "a.py" and "b.py"
    When the policy is applied
    Then no file is restored
    And 2 warnings are given

  @F-005 @BR-3.2-23 @BR-3.2-36 @BR-4.3-3
  Scenario Outline: Restoration stops before 50000 tokens are passed
    Given the policy:
      """
      extends: context-compact
      compaction: {restore: {max_files: 20}}
      """
    And the working directory has the files "1.py", "2.py", "3.py", "4.py", "5.py", "6.py", "7.py", "8.py" and "9.py" of 5000 tokens
    And the working directory has the file "10.py" of <tenth> tokens
    And the working directory has the file "oldest.py" of 10 tokens
    And the agent has read the files "oldest.py", "10.py", "9.py", "8.py", "7.py", "6.py", "5.py", "4.py", "3.py", "2.py" and "1.py"
    When the policy is applied
    Then <outcome>

    Examples:
      | tenth | outcome |
      | 4990 | the files "1.py", "2.py", "3.py", "4.py", "5.py", "6.py", "7.py", "8.py", "9.py", "10.py" and "oldest.py" are restored |
      | 5000 | the files "1.py", "2.py", "3.py", "4.py", "5.py", "6.py", "7.py", "8.py", "9.py" and "10.py" are restored |

  @F-005 @BR-3.2-36
  Scenario: Where restoration stopped, nothing smaller comes back either, and each is named
    Given the policy:
      """
      extends: context-compact
      compaction: {restore: {max_tokens_total: 100}}
      """
    And the working directory has the files "a.py" and "b.py" of 60 tokens
    And the working directory has the file "c.py" of 10 tokens
    And the agent has read the files "c.py", "b.py" and "a.py"
    When the policy is applied
    Then the file "a.py" is restored
    And a warning says "'b.py' is not restored: 120 tokens with the files before it are more than 100"
    And a warning says "'c.py' is not restored: restoration stopped at 100 tokens"

  @F-005 @BR-3.2-30
  Scenario: A relative path is one of the working directory, an absolute one may be in it
    Given the policy:
      """
      extends: context-compact
      compaction: {restore: {work_dir: project}}
      """
    And the working directory has the files "project/a.py" and "b.py" that read "here"
    And the agent has read the files "b.py" and "a.py"
    When the policy is applied
    Then the file "a.py" is restored
    And a warning says "'b.py' is not restored: there is no such file"

  @F-005 @BR-3.2-31 @BR-3.2-41 @BR-4.2-1
  Scenario Outline: No path leads out of the working directory
    Given the working directory has the file "../secret.txt" that reads "secret"
    And the working directory has the file "../work-evil/secret.txt" that reads "secret"
    And the working directory has the link "link.txt" to "../secret.txt"
    And the working directory has the file "a.py" of 10 tokens
    And the agent has read the files "a.py" and "<path>"
    When the policy is applied
    Then the file "a.py" is restored
    And 1 warning is given
    And a warning says "'<path>' is not restored: it is outside of"

    Examples:
      | path             |
      | ../secret.txt    |
      | src/../../secret.txt |
      | /etc/hostname    |
      | link.txt         |
      | ../work-evil/secret.txt |

  @F-005 @BR-3.2-40
  Scenario Outline: What cannot be read is skipped
    Given the working directory has the <kind> "odd"
    And the working directory has the file "a.py" of 10 tokens
    And the agent has read the files "a.py" and "odd"
    When the policy is applied
    Then the file "a.py" is restored
    And 1 warning is given
    And a warning says "'odd' is not restored: <why>"

    Examples:
      | kind            | why                               |
      | folder          | it is a folder                    |
      | unreadable file | there is no permission to read it |
      | binary file     | it is not text                    |

  @F-005 @BR-3.2-44
  Scenario: An empty file comes back
    Given the working directory has the file "empty.py" that reads ""
    And the agent has read the file "empty.py"
    When the policy is applied
    Then the file "empty.py" is restored
    And the compaction reports:
      | restored_file_count  | 1 |
      | restored_token_count | 0 |

  @F-005 @BR-3.2-46 @BR-3.2-47
  Scenario: Nothing is done to the files
    Given the working directory has the file "a.py" that reads "a = 1"
    And the agent has read the file "a.py"
    When the policy is applied
    Then the file "../work/a.py" reads "a = 1"
    And every file is below the root folder

  @F-005 @BR-3.2-40
  Scenario: A file with a NUL byte is skipped, whatever else is in it
    Given the working directory has the file "odd.py" that reads "a = 1\u0000"
    And the agent has read the file "odd.py"
    When the policy is applied
    Then no file is restored
    And a warning says "'odd.py' is not restored: it is not text: there is a NUL byte in it"

  @F-005 @BR-3.2-40
  Scenario: A link that leads back to itself is skipped
    Given the working directory has the link "loop.py" to "loop.py"
    And the agent has read the file "loop.py"
    When the policy is applied
    Then no file is restored
    And a warning says "'loop.py' is not restored: it is a link that leads back to itself"
