Feature: What is offloaded
  A result that is too long goes to a file as it arrives, before a model has seen it. Only the
  message that has just arrived is looked at. Whether it is long enough is the caller's judgement,
  and the policy is that caller: from 1000 characters on, or whatever number it is given.

  Background:
    Given the policy "tool-direct-offload"
    And the session "session-abc123"

  @UC-001 @F-001 @BR-2.2-1 @BR-3.2-1 @BR-3.2-5
  Scenario: A long text is offloaded as it arrives
    When a result "toolu_xyz" of 1500 characters arrives from Bash
    Then the result "toolu_xyz" is newly offloaded
    And the content of the result "toolu_xyz" is a string
    And the result "toolu_xyz" reads "[Tool result offloaded to file: {path}]"
    And the root folder holds only the file "session-abc123/toolu_xyz.md"
    And the file "session-abc123/toolu_xyz.md" holds the original content of the result "toolu_xyz"

  @UC-002 @F-001 @BR-3.2-5 @BR-3.2-9
  Scenario: Long blocks are offloaded as they arrive
    When a result "toolu_xyz" of 1500 characters in blocks arrives from Bash
    Then the result "toolu_xyz" is newly offloaded
    And the content of the result "toolu_xyz" is a string
    And the result "toolu_xyz" reads "[Tool result offloaded to file: {path}]"
    And the root folder holds only the file "session-abc123/toolu_xyz.md"
    And the file "session-abc123/toolu_xyz.md" holds the original content of the result "toolu_xyz"

  @UC-001 @BR-2.2-1 @BR-5.3-1
  Scenario Outline: From 1000 characters on a text is long enough
    When a result "toolu_xyz" of <size> characters arrives
    Then <count> results are offloaded
    And <count> files are written

    Examples:
      | size  | count |
      | 0     | 0     |
      | 999   | 0     |
      | 1000  | 1     |
      | 50000 | 1     |

  @UC-002 @BR-5.3-1
  Scenario Outline: Of blocks the characters of their JSON count
    When a result "toolu_xyz" of <size> characters in blocks arrives
    Then <count> results are offloaded
    And <count> files are written

    Examples:
      | size | count |
      | 999  | 0     |
      | 1000 | 1     |

  @BR-5.3-1
  Scenario: A result that is not long enough comes back as it is
    When a result "toolu_xyz" of 999 characters arrives
    Then the result "toolu_xyz" is kept because "999 < 1,000 chars"
    And the result "toolu_xyz" is the same object as before
    And no file is written
    And no folder is made

  @F-001 @BR-1.3-1 @BR-3.2-13
  Scenario Outline: Where the caller has judged already, no size is asked for
    Given the policy
      """
      extends: tool-direct-offload
      min_chars: 0
      """
    When a result "toolu_xyz" of <size> characters arrives
    Then the result "toolu_xyz" is offloaded
    And the result "toolu_xyz" reads "[Tool result offloaded to file: {path}]"
    And the file "session-abc123/toolu_xyz.md" holds the original content of the result "toolu_xyz"

    Examples:
      | size |
      | 0    |
      | 1    |
      | 999  |
      | 1000 |

  @UC-001 @BR-1.2-1
  Scenario: A model is sent fewer tokens
    When a result "toolu_xyz" of 40000 characters arrives from Bash
    And the policy is applied before the next model call
    Then the context has under 200 tokens

  @F-001 @BR-2.2-1
  Scenario: A Chinese character is one character
    Given the policy
      """
      extends: tool-direct-offload
      min_chars: 60
      """
    When these results arrive
      | id    | text |
      | long  | 具调用返回的结果太长了，所以它在到达模型之前就被卸载到文件里，消息里只留下文件的路径，需要的时候再去读取它，省下上下文。 |
      | short | 具调用返回的结果太长了，所以它在到达模型之前就被卸载到文件里，消息里只留下文件的路径，需要的时候再去读取它，省下上下文 |
    Then only the result "long" is offloaded
    And the result "short" is kept because "59 < 60 chars"
    And 60 characters are freed
    And the file "session-abc123/long.md" holds the original content of the result "long"

  @BR-1.3-4
  Scenario: What is in the context already is left alone
    Given a result "old" of 5000 characters from Bash
    When a result "new" of 1500 characters arrives from Bash
    Then only the result "new" is offloaded
    And the root folder holds only the file "session-abc123/new.md"

  @F-001 @BR-3.2-1
  Scenario: Of the results of parallel calls in one message each is judged by itself
    When these results arrive
      | id | tool | size            |
      | a  | Bash | 1500 characters |
      | b  | Read | 20 characters   |
      | c  | Bash | 2000 characters |
    Then only the results "a" and "c" are offloaded
    And the result "b" is kept because "20 < 1,000 chars"
    And the result lists the files "session-abc123/a.md" and "session-abc123/c.md"
    And the file of every offloaded item holds its original content

  @F-001 @BR-3.2-1
  Scenario: In the chat shape of OpenAI a message of the role tool is offloaded
    Given the messages have the OpenAI shape
    When a result "call_1" of 1500 characters arrives from Bash
    Then the result "call_1" is offloaded
    And the file "session-abc123/call_1.md" holds the original content of the result "call_1"
    When a result "call_2" of 1500 characters in blocks arrives from Bash
    Then the content of the result "call_2" is a string
    And the file "session-abc123/call_2.md" holds the original content of the result "call_2"

  @F-001 @BR-3.2-1 @BR-3.2-5
  Scenario: The rest of the message stays, byte for byte
    Given the policy
      """
      extends: tool-direct-offload
      min_chars: 0
      """
    When these results arrive
      """
      {"role": "user", "content": [
        {"type": "text", "text": "继续"},
        {"type": "tool_result", "tool_use_id": "toolu_xyz", "is_error": true, "cache_control": {"type": "ephemeral"}, "content": "命令失败：找不到文件"}]}
      """
    Then the messages are
      """
      [{"role": "user", "content": [
        {"type": "text", "text": "继续"},
        {"type": "tool_result", "tool_use_id": "toolu_xyz", "is_error": true, "cache_control": {"type": "ephemeral"}, "content": "[Tool result offloaded to file: {root}/session-abc123/toolu_xyz.md]"}]}]
      """

  @F-001 @BR-3.2-1 @BR-3.2-10 @BR-3.2-18
  Scenario Outline: A result block in a message of the role tool keeps its type and id
    Given the policy
      """
      extends: tool-direct-offload
      min_chars: 0
      """
    When these results arrive
      """
      {"role": "<role>", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_xyz", "content": "命令失败：找不到文件"}]}
      """
    Then the messages are
      """
      [{"role": "<role>", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_xyz", "content": "[Tool result offloaded to file: {root}/session-abc123/toolu_xyz.md]"}]}]
      """
    And the root folder holds only the file "session-abc123/toolu_xyz.md"
    And the file "session-abc123/toolu_xyz.md" reads "命令失败：找不到文件"

    Examples:
      | role     |
      | tool     |
      | function |
      | user     |

  @F-002 @BR-3.2-21
  Scenario: The result of a legacy function call is named by the function and its content
    Given the policy
      """
      extends: tool-direct-offload
      min_chars: 0
      """
    When these results arrive
      """
      {"role": "function", "name": "get_weather", "content": "rain"}
      """
    Then the root folder holds only the file "session-abc123/get_weather-sha256-319b44c570a417ff.md"
