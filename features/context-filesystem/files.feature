Feature: The files
  Every session has a folder; in it, a folder for each type of item and each tool.

  Background:
    Given the policy "context-filesystem"
    And the tool Read is ephemeral and keeps 0 results
    And the tool Bash is ephemeral and keeps 0 results

  @BR-3.3-1 @BR-3.3-2 @BR-3.3-3
  Scenario: The layout of a session's folder
    Given the session "session_20240115_abc"
    And the policy's own root folder
    And a session with a result "call_abc123" of 300 tokens from Read
    And a result "call_def456" of 300 tokens from Bash
    When the policy is applied
    Then the file of the result "call_abc123" is "{root}/tool_result/Read/call_abc123.json"
    And the result "call_abc123" reads like "*/.agent/context/session_20240115_abc/tool_result/Read/call_abc123.json*"
    And only the files "tool_result/Read/call_abc123.json" and "tool_result/Bash/call_def456.json" are written
    And the file "index.json" is JSON with
      | schema_version | 1.0 |

  @BR-3.3-2 @BR-2.2-5
  Scenario: The index lists what is in the folder
    Given the session "s-1"
    And the policy's own root folder
    And a session with a result "call_abc123" of 300 tokens from Read
    When the policy is applied
    Then the file "index.json" is JSON with
      | items | [{"path":"tool_result/Read/call_abc123.json",*"item_id":"call_abc123",*}] |
    Given a result "call_def456" of 300 tokens from Bash
    When the policy is applied
    Then the file "index.json" is JSON with
      | journal.path  | .policyctx/journal.jsonl |
      | journal.bytes | *                        |
      | items | [{*"item_id":"call_abc123",*},*{"path":"tool_result/Bash/call_def456.json",*"item_id":"call_def456",*}] |
    When the session is closed
    Then the file "index.json" is JSON with
      | items | [{*"item_id":"call_abc123",*},*{"path":"tool_result/Bash/call_def456.json",*"item_id":"call_def456",*}] |
    Given a result "call_ghi789" of 300 tokens from Read
    When the policy is applied
    And the session is closed
    Then the file "index.json" is JSON with
      | items | [{*"call_abc123"*},*{*"call_def456"*},*{"path":"tool_result/Read/call_ghi789.json",*"item_id":"call_ghi789",*}] |

  @BR-3.3-2 @BR-2.2-5
  Scenario: The index is written again as the folder grows
    Given the session "s-1"
    And the policy's own root folder
    And a session with a result "first" of 300 tokens from Read
    When the policy is applied
    And the session continues for 12 turns with 10 Read results of 300 tokens each
    Then the file "index.json" is JSON with
      | items | *"path":"tool_result/Read/first.json"*"path":"tool_result/Read/call_* |

  @BR-3.3-2 @BR-2.2-5
  Scenario: In a large folder the index is complete when the session is closed
    Given the session "s-1"
    And a session with 1001 parallel Read results of 300 tokens
    When the policy is applied
    Given a result "newest" of 300 tokens from Read
    When the policy is applied
    Then the result "newest" is offloaded
    When the session is closed
    Then the file "index.json" is JSON with
      | items | *"path":"tool_result/Read/newest.json"* |

  @BR-3.3-5
  Scenario: A user's message goes to a folder of its type, named by its place
    Given the request's system prompt has 160,000 tokens
    And a user message that reads "the task"
    And a user message of 3,000 tokens
    And an assistant message that reads "done"
    And a user message of 3,000 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then the file of the 2nd user message is "user_message/msg_002.json"
    And the file of the 3rd user message is "user_message/msg_004.json"
    And the file "user_message/msg_004.json" is JSON with
      | item_id   | msg_004      |
      | item_type | user_message |
      | metadata  | {}           |

  @BR-3.3-4
  Scenario: So does an agent's message, where a policy lets it go
    Given the policy
      """
      extends: context-filesystem
      items: {assistant_message: {offload: true, keep_recent: 0}}
      """
    And a session with an assistant message of 300 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then the file of the first assistant message is "assistant_message/msg_002.json"

  @BR-3.4-1 @BR-3.4-2 @BR-3.4-3 @BR-3.4-4 @BR-3.4-5 @BR-3.4-6
  Scenario: A file is a JSON document around the content
    Given a result "call_abc123" from Read that reads
      """
      line one "quoted"
      第二行，以及足够多的文字，使得占位符比原来的内容短得多，这样它才会离开上下文，进入文件系统。
      And some more words, so that it is worth the while to put them all into a file of their own,
      even though the path of that file is long, as it is on some machines where temporary folders
      are deep: this text has to be longer than that whatever happens, so it goes on for a while,
      and for another line, and for one more, until nobody doubts any longer that it is long enough.
      And some more words, so that it is worth the while to put them all into a file of their own.
      """
    When the policy is applied
    Then the file "tool_result/Read/call_abc123.json" is JSON with
      | schema_version     | 1.0                                                          |
      | item_id            | call_abc123                                                  |
      | item_type          | tool_result                                                  |
      | offloaded_at       | *                                                            |
      | metadata           | {"tool_name":"Read"}                                         |
      | metadata.tool_name | Read                                                         |
      | content            | line one "quoted"*第二行，以及足够多的文字*long enough*own. |
    And the file "tool_result/Read/call_abc123.json" holds the original content of the result "call_abc123"
    And the file "tool_result/Read/call_abc123.json" contains "第二行，以及足够多的文字"

  @BR-3.4-4
  Scenario: The time in a file is a whole number of seconds
    Given a result "a" of 300 tokens from Read
    When the policy is applied
    Then the file "tool_result/Read/a.json" is JSON with
      | offloaded_at | a whole number       |
      | offloaded_at | over 1,700,000,000   |
      | offloaded_at | under 10,000,000,000 |

  @BR-3.4-6 @BR-6.1-2
  Scenario Outline: The content in a file is the original, to the last character
    Given a result "a" that reads "<text> and many more words to make it worth the while, such as these, and these, and those that follow them in this very line, which is long, longer than any path that a machine might have for its temporary folders, and than the words around it, and so it can be sure to leave the context for a file, as it should: one two three four five six seven eight nine ten eleven twelve thirteen fourteen" from Read
    When the policy is applied
    Then the file of the result "a" holds its original content
    And the result "a" can be read back

    Examples:
      | text                     |
      | plain                    |
      | 中文，與「引號」         |
      | \\r\\n, a tab\\t and \\u0000 |
      | \\ud83d alone            |

  @BR-3.4-6
  Scenario: What was blocks can be restored as blocks
    Given a result "a" of 1500 characters in blocks from Read
    When the policy is applied
    Then the result "a" is offloaded
    And the result "a" can be restored

  @BR-3.3-3
  Scenario: An id that comes again does not take the first one's file
    Given a result "twice" of 300 tokens from Read
    And a result "twice" of 400 tokens from Read
    When the policy is applied
    Then the file of the first result is "tool_result/Read/twice.json"
    And the file of the 2nd result is "tool_result/Read/twice-1.json"
    And the file of every result holds its original content

  @BR-3.3-3
  Scenario: Neither an id nor a tool's name leads out of the folder
    Given the tool "../../x" is ephemeral and keeps 0 results
    And a result "../../secret" of 300 tokens from "../../x"
    When the policy is applied
    Then the file of every result is "tool_result/..%2F..%2Fx/..%2F..%2Fsecret.json"
    And every file is below the root folder
