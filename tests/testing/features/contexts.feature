Feature: What is in a context
  Each way to put something into a context, seen by what a policy then makes of it.

  Background:
    Given the policy
      """
      min_chars: 100
      items:
        tool_result: {offload: true}
        user_message: {offload: true}
      placeholder: "[{relative_path}]"
      steps:
        - {name: leave, do: offload, must_shrink: false}
      """

  Scenario Outline: A size in characters is exact, in text and in blocks
    Given a result "a" of <size> characters <form>
    When only a plan is made
    Then the result "a" is kept because "<size> < 100 chars"

    Examples:
      | size | form              |
      | 0    | from Bash         |
      | 1    | from Bash         |
      | 73   | from Bash         |
      | 74   | from Bash         |
      | 99   | in blocks         |
      | 28   | in blocks         |
      | 50   | in blocks         |

  Scenario Outline: A large size in characters is exact
    Given a result "a" of <size> characters <form>
    When the policy is applied
    Then <chars> characters are freed

    Examples:
      | size   | chars  | form      |
      | 100    | 100    | from Bash |
      | 147    | 147    | from Bash |
      | 30,000 | 30,000 | from Bash |
      | 100    | 100    | in blocks |
      | 30,000 | 30,000 | in blocks |

  Scenario: Results come after their calls where a tool is named
    Given a session with 3 Bash results of 100 characters
    When the policy is applied
    Then the context has 7 messages
    And every Bash result is offloaded

  Scenario: Results whose tool is not named have no calls
    Given 3 results of 100 characters
    When the policy is applied
    Then the context has 3 messages
    And 3 results are offloaded
    But no call is kept

  Scenario: Parallel results are one message
    Given a session with 3 parallel Bash results of 100 characters
    When the policy is applied
    Then the context has 3 messages
    And 3 Bash results are offloaded

  Scenario: In the OpenAI shape each result is its own message
    Given the messages have the OpenAI shape
    And a session with 3 parallel Bash results of 100 characters
    When the policy is applied
    Then the context has 5 messages
    And 3 Bash results are offloaded
    And the 2nd Bash result reads "[./tool_result/Bash/call_2.md]"

  Scenario: In the OpenAI Responses shape each call and each result is an item
    Given the messages have the OpenAI Responses shape
    And a session with 3 parallel Bash results of 100 characters
    When the policy is applied
    Then the context has 7 messages
    And 3 Bash results are offloaded
    And the 2nd Bash result reads "[./tool_result/Bash/call_2.md]"

  Scenario: No two texts of a size are alike
    Given 40 Bash results of 100 tokens
    When the policy is applied
    Then 40 files are written
    And the file of every result holds its original content

  Scenario: Messages with text
    Given a system message that reads "be brief"
    And a user message of 150 characters
    And an assistant message of 20 tokens
    And a user message of 99 characters
    When the policy is applied
    Then only the first user message is offloaded
    And the last user message is kept
    And the assistant message is kept
    And the system message reads "be brief"
    And the context has 4 messages

  Scenario: A table holds blocks of every kind
    Given the messages:
      | role      | type             | id | tool | size           | text    | failed |
      | system    |                  |    |      |                | brief   |        |
      | user      | text             |    |      | 120 characters |         |        |
      | and       | image            |    |      |                |         |        |
      | assistant | thinking         |    |      |                | hm      |        |
      | and       | text             |    |      |                | I look  |        |
      | and       | call             | a  | Bash |                |         |        |
      | and       | call             | b  | Read |                |         |        |
      |           | result           | a  | Bash | 200 characters |         |        |
      | and       | result in blocks | b  | Read | 300 characters |         | yes    |
      |           | tool_result      | c  | Grep | 100 characters |         |        |
      | user      | document         |    |      |                |         |        |
    When the policy is applied
    Then the context has 7 messages
    And the user message is kept because "protected"
    And 3 results are offloaded
    And the result "b" from Read is offloaded
    And the thinking block is the same object as before

  Scenario: The same table in the OpenAI shape
    Given the messages have the OpenAI shape
    And the messages:
      | role      | type             | id | tool | size           |
      | user      | text             |    |      | 120 characters |
      | and       | image            |    |      |                |
      | assistant | call             | a  | Bash |                |
      | and       | call             | b  | Read |                |
      |           | result           | a  | Bash | 200 characters |
      | and       | result in blocks | b  | Read | 300 characters |
    When the policy is applied
    Then the context has 4 messages
    And the Bash result "a" is offloaded
    And the Read result "b" is offloaded

  Scenario: The same table in the OpenAI Responses shape
    Given the messages have the OpenAI Responses shape
    And the messages:
      | role      | type             | id | tool | size           |
      | user      | text             |    |      | 120 characters |
      | and       | image            |    |      |                |
      | user      | document         |    |      |                |
      | assistant | thinking         |    |      | 20 characters  |
      | and       | text             |    |      | 20 characters  |
      | assistant | call             | a  | Bash |                |
      | and       | call             | b  | Read |                |
      |           | result           | a  | Bash | 200 characters |
      | and       | result in blocks | b  | Read | 300 characters |
    When the policy is applied
    Then the context has 8 messages
    And the Bash result "a" is offloaded
    And the Read result "b" is offloaded
    And the thinking block is the same object as before
    And the assistant message is the same object as before

  Scenario: Ages are turns
    Given the messages:
      | type   | id  | tool | size       | age |
      | result | old | Bash | 100 tokens | 3   |
      | result | mid | Bash | 100 tokens | 1   |
      | result | new | Bash | 100 tokens | 0   |
    When the policy is applied
    Then the context has 9 messages
    And message 3 reads "go on"
    And message 4 reads "go on"
    And message 7 reads "go on"

  Scenario: Messages as JSON
    Given the messages
      """
      [{"role": "user", "content": "hello"},
       {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}]},
       {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}]
      """
    When the policy is applied
    Then the Read result "a" is kept because "below_threshold"
    And the messages are
      """
      [{"role": "user", "content": "hello"},
       {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}]},
       {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}]
      """

  Scenario: A recording, and a file of messages
    Given the recording "session.jsonl"
    And the recording "messages.json"
    When the policy is applied
    Then the context has 4 messages
    And the Bash result "toolu_1" is kept because "2 < 100 chars"

  Scenario: A text in quotes or in a docstring, in any language
    Given a result "a" that reads "字: \"quoted\"\n\u5b57"
    And a result "b" from Read that reads
      """
      two
      lines
      """
    When the policy is applied
    Then the result "a" reads as follows
      """
      字: "quoted"
      字
      """
    And the result "b" reads "two\nlines"

  Scenario Outline: Hostile, repeated and empty ids stay below the root folder
    Given a result "<id>" of 100 characters from "../up"
    And a result "<id>" of 101 characters
    When the policy is applied
    Then 2 results are offloaded
    And 2 files are written
    And every file is below the root folder
    And the file of every result holds its original content

    Examples:
      | id                  |
      | ../../etc/passwd    |
      | a\u0000b            |
      | ..                  |
      | C:\\Windows\\x      |
      | 字                  |
      |                     |

  Scenario: The request's system prompt counts
    Given the request's system prompt has 5,000 tokens
    And a user message of 10 tokens
    When the policy is applied
    Then the context has 5,010 tokens
    And the context has 1 messages
    And the context has at most 50 characters

  Scenario: A failed result
    Given the policy
      """
      items: {tool_result: {offload: true}}
      steps:
        - {name: leave, do: offload, must_shrink: false, select: {errors: false}}
      """
    And a failed result "a" of 100 tokens from Bash
    And a result "b" of 100 tokens from Bash
    When the policy is applied
    Then only the result "b" is offloaded
    And the result "a" is kept because "failed_result"

  Scenario Outline: A text may begin with given words, and its size is that of all of it
    Given a user message of <size> characters that begins with "Base directory for this skill:"
    And a user message that reads "go on"
    When the policy is applied
    Then <count> user messages are offloaded

    Examples:
      | size | count |
      | 99   | no    |
      | 100  | 1     |

  Scenario: Code may say what a tool keeps, where the policy says nothing nearer
    Given the policy
      """
      items: {tool_result: {offload: true}}
      tools: {Bash: {keep_recent: 3}}
      steps: [{name: retire, do: offload, select: {ephemeral: true}}]
      """
    And the tool Read is ephemeral and keeps 1 result
    And the tool Bash is ephemeral and keeps 1 result
    And 3 Read results of 300 characters
    And 3 Bash results of 300 characters
    And 3 Grep results of 300 characters
    When the policy is applied
    Then 2 Read results are offloaded
    And every Bash result is kept because "recent"
    And every Grep result is kept because "not_ephemeral"
