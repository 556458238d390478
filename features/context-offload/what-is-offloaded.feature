Feature: What is offloaded
  The content of every tool result that is long enough leaves the history for a file. A short one
  costs less than it would save, and all that is not a tool result is needed where it stands.

  Background:
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is not set
    And the policy "context-offload"

  @UC-001 @F-001 @BR-1.2-1 @BR-2.2-1 @BR-3.2-2
  Scenario: A long result leaves the history for a file
    Given a user message of 40 characters
    And a result "toolu_01abc" of 2500 characters from Bash
    When the policy is applied
    Then only the result "toolu_01abc" is offloaded
    And the result "toolu_01abc" reads "[Content offloaded to: ./tool-result-toolu_01abc.md]"
    And the root folder holds only the file "tool-result-toolu_01abc.md"
    And the file "tool-result-toolu_01abc.md" holds the original content of the result "toolu_01abc"
    And the context has under 150 characters

  @UC-001 @F-002 @BR-1.2-3 @BR-3.2-16 @BR-3.2-22 @BR-3.2-25
  Scenario Outline: From 100 characters on a result is offloaded
    Given a result "toolu_x" of <size> characters
    When the policy is applied
    Then only the result "toolu_x" is offloaded
    And <size> characters are freed
    And the file "tool-result-toolu_x.md" holds the original content of the result "toolu_x"

    Examples:
      | size  |
      | 100   |
      | 101   |
      | 99999 |

  @UC-002 @F-002 @BR-1.2-3 @BR-3.2-17 @BR-3.2-18 @BR-3.2-22 @BR-3.2-24
  Scenario Outline: Below 100 characters a result stays as it is
    Given a result "toolu_x" of <size> characters
    When the policy is applied
    Then the result "toolu_x" is kept because "<size> < 100 chars"
    And the same list is returned
    And the result reports no offloaded item
    And no file is written

    Examples:
      | size |
      | 0    |
      | 1    |
      | 99   |

  @F-002 @BR-3.2-22
  Scenario: A character is a Unicode code point
    Given a result "faces" that reads "😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀" from Bash
    When the policy is applied
    Then the result "faces" is kept because "60 < 100 chars"

  @F-002 @BR-3.2-23 @BR-3.2-25
  Scenario Outline: Blocks are measured by their JSON, from 100 characters on they are offloaded
    Given a result "blocks" of <size> characters in blocks
    When the policy is applied
    Then only the result "blocks" is offloaded
    And <size> characters are freed

    Examples:
      | size |
      | 100  |
      | 101  |

  @F-002 @BR-3.2-23 @BR-3.2-24
  Scenario Outline: Blocks whose JSON is shorter stay as they are
    Given a result "blocks" of <size> characters in blocks
    When the policy is applied
    Then the result "blocks" is kept because "<size> < 100 chars"
    And the content of the result "blocks" is a list of blocks
    And no file is written

    Examples:
      | size |
      | 27   |
      | 99   |

  @F-002 @BR-3.2-23 @BR-3.2-25
  Scenario: What the JSON adds counts, a text of 73 characters in a block has 100
    Given the messages
      """
      [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_x", "content": [
        {"type": "text", "text": "1234567890123456789012345678901234567890123456789012345678901234567890123"}]}]}]
      """
    When the policy is applied
    Then the result "toolu_x" is offloaded
    And 100 characters are freed

  @F-002 @BR-3.2-23 @BR-3.2-25
  Scenario: A line break in a block is two characters of its JSON
    Given the messages
      """
      [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_x", "content": [
        {"type": "text", "text": "12345678901234567890123456789012345678901234567890123456789012345678901\n"}]}]}]
      """
    When the policy is applied
    Then the result "toolu_x" is offloaded
    And 100 characters are freed

  @F-002 @BR-3.2-22 @BR-3.2-25
  Scenario: Characters are counted, not bytes or tokens
    Given a result "long" that reads
      """
      上下文卸载方法把历史消息中工具调用返回的大段内容写入文件并在消息中替换为文件路径引用从而释放上下文空间。上下文卸载方法把历史消息中工具调用返回的大段内容写入文件并在消息中替换为文件路径引用从而释放上下
      """
    And a result "short" that reads
      """
      下文卸载方法把历史消息中工具调用返回的大段内容写入文件并在消息中替换为文件路径引用从而释放上下文空间。上下文卸载方法把历史消息中工具调用返回的大段内容写入文件并在消息中替换为文件路径引用从而释放上下
      """
    When the policy is applied
    Then only the result "long" is offloaded
    And 100 characters are freed
    And the result "short" is kept because "99 < 100 chars"
    And the file "tool-result-long.md" holds the original content of the result "long"

  @F-002 @BR-3.2-23 @BR-3.2-25
  Scenario: In the JSON of blocks a Chinese character is one character too
    Given the messages
      """
      [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_x", "content": [
        {"type": "text", "text": "上下文卸载方法把历史消息中工具调用返回的大段内容写入文件并在消息中替换为文件路径引用从而释放上下文空间。上下文卸载方法把历史消息中工具调用返回的大"}]}]}]
      """
    When the policy is applied
    Then the result "toolu_x" is offloaded
    And 100 characters are freed
    And the file "tool-result-toolu_x.md" holds the original content of the result "toolu_x"

  @UC-003
  Scenario: Of long and short results only the long ones leave
    Given a result "long" of 300 characters from Bash
    And a result "short" of 30 characters from Read
    And a result "longer" of 600 characters from Read
    When the policy is applied
    Then only the results "long" and "longer" are offloaded
    And the result "short" is kept because "30 < 100 chars"
    And the result "short" is the same object as before
    And only the files "tool-result-long.md" and "tool-result-longer.md" are written

  @UC-003 @BR-3.2-8
  Scenario: Of the results of parallel calls each is judged by itself
    Given the messages
      | type   | role | id   | tool | size           |
      | call   |      | a    | Bash |                |
      | call   | and  | b    | Read |                |
      | call   | and  | c    | Bash |                |
      | result |      | a    | Bash | 400 characters |
      | result | and  | b    | Read | 40 characters  |
      | result | and  | c    | Bash | 500 characters |
    When the policy is applied
    Then only the results "a" and "c" are offloaded
    And the result "b" is kept because "40 < 100 chars"
    And only the files "tool-result-a.md" and "tool-result-c.md" are written
    And the file of every offloaded item holds its original content

  @F-001 @BR-3.2-8
  Scenario: Every block of a message is looked at
    Given the messages
      | type             | role | id  | size           |
      | text             | user |     | 150 characters |
      | result           | and  | one | 250 characters |
      | text             | and  |     | 150 characters |
      | result in blocks | and  | two | 250 characters |
    When the policy is applied
    Then only the results "one" and "two" are offloaded
    And every user message is kept

  @UC-004 @BR-3.2-9
  Scenario Outline: Without a tool result nothing happens
    Given <message> of 5000 characters
    When the policy is applied
    Then the same list is returned
    And the result reports no offloaded item
    And no file is written
    And no folder is made

    Examples:
      | message              |
      | a user message       |
      | an assistant message |
      | a system message     |

  @F-001 @BR-3.2-1 @BR-3.2-9
  Scenario: Only tool results are touched, however long the rest is
    Given the messages
      """
      [
       {"role": "user", "content": [{"type": "text", "text": "A question of more than one hundred characters, which the agent must see word for word in every turn to come."}]},
       {"role": "assistant", "content": [
        {"type": "text", "text": "An answer of more than one hundred characters, which says what is to be done and why it is to be done that way."},
        {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {"path": "notes.md", "content": "The input of a call, of more than one hundred characters, which is no result of it and therefore stays."}}]},
       {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "A result that is so long that it leaves the history for a file. It is here only to be offloaded, word by word: one two three four five six seven eight nine ten eleven twelve thirteen."},
        {"type": "text", "text": "ok"}]}
      ]
      """
    When the policy is applied
    Then the messages are
      """
      [
       {"role": "user", "content": [{"type": "text", "text": "A question of more than one hundred characters, which the agent must see word for word in every turn to come."}]},
       {"role": "assistant", "content": [
        {"type": "text", "text": "An answer of more than one hundred characters, which says what is to be done and why it is to be done that way."},
        {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {"path": "notes.md", "content": "The input of a call, of more than one hundred characters, which is no result of it and therefore stays."}}]},
       {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "[Content offloaded to: ./tool-result-toolu_1.md]"},
        {"type": "text", "text": "ok"}]}
      ]
      """

  @F-001 @BR-3.2-1
  Scenario: A result whose call is not in the list is offloaded too
    Given a result "toolu_lost" of 300 characters
    When the policy is applied
    Then only the result "toolu_lost" is offloaded

  @F-001 @BR-3.2-1
  Scenario: The result of a call that failed is offloaded like any other
    Given a failed result of 300 characters from Bash
    When the policy is applied
    Then 1 result is offloaded

  @F-001 @BR-3.2-1
  Scenario: In the chat shape of OpenAI a message of the role tool is a result
    Given the messages have the OpenAI shape
    And a user message of 40 characters
    And 2 parallel Bash results of 300 characters
    And a result "blocks" of 300 characters in blocks from Read
    And a result "short" of 99 characters from Read
    When the policy is applied
    Then 3 results are offloaded
    And the content of the result "blocks" is a string
    And the result "blocks" reads "[Content offloaded to: ./tool-result-blocks.md]"
    And the result "short" is the same object as before
    And the file of every offloaded item holds its original content

  @F-001 @BR-3.2-1
  Scenario Outline: Result blocks in a message of the role tool are results
    Given the messages
      """
      [
       {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}]},
       {"role": "<role>", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": "A result that is so long that it leaves the history for a file. It is here only to be offloaded, word by word."}]}
      ]
      """
    When the policy is applied
    Then the messages are
      """
      [
       {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}]},
       {"role": "<role>", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": "[Content offloaded to: ./tool-result-toolu_1.md]"}]}
      ]
      """
    And the root folder holds only the file "tool-result-toolu_1.md"

    Examples:
      | role     |
      | tool     |
      | function |

  @BR-1.3-2 @BR-5.3-1
  Scenario: It runs whenever it is called, however much room there is
    Given the policy
      """
      extends: context-offload
      model: {context_window: 1000000}
      """
    And a result "toolu_x" of 100 characters
    When the policy is applied
    Then the result "toolu_x" is offloaded

  @BR-1.3-2 @BR-5.3-1
  Scenario: The newest result leaves as well, nothing is kept for being recent
    Given a session with 4 Bash results of 300 characters
    When the policy is applied
    Then 4 results are offloaded
