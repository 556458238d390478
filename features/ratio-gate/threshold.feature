Feature: The share from which offloading is worth it
  Files are written only when what would leave is a large enough part of all messages. A step that
  would free next to nothing does not run at all.

  Background:
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is not set
    And the policy "context-offload"

  @UC-005 @F-006 @BR-1.2-1 @BR-3.2-9 @BR-5.1-3
  Scenario: A large share is offloaded
    Given a user message of 500 characters
    And a result "toolu_01abc" of 500 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens because "50 % >= 20 %"
    And only the result "toolu_01abc" is offloaded
    And the result "toolu_01abc" reads "[Content offloaded to: ./tool-result-toolu_01abc.md]"
    And the file "tool-result-toolu_01abc.md" holds the original content of the result "toolu_01abc"
    And the result reports 1 offloaded item
    And 500 characters are freed

  @UC-006 @F-006 @BR-1.2-1 @BR-2.2-1 @BR-3.2-2 @BR-3.2-8
  Scenario: A small share stays where it is
    Given a user message of 9000 characters
    And a result "toolu_01abc" of 500 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "5.263 % < 20 %"
    And the result "toolu_01abc" is kept because "ratio: 5.263 % < 20 %"
    And the same list is returned

  @F-006 @BR-3.2-7 @BR-3.2-13
  Scenario Outline: At exactly a fifth the gate opens
    Given a user message of <rest> characters
    And a result of <size> characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens because "20 % >= 20 %"
    And 1 result is offloaded

    Examples:
      | size  | rest   |
      | 100   | 400    |
      | 200   | 800    |
      | 33333 | 133332 |

  @F-006 @BR-3.2-7 @BR-3.2-14
  Scenario Outline: Just below a fifth it stays closed
    Given a user message of <rest> characters
    And a result of <size> characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "< 20 %"
    And no characters are freed
    And the same list is returned

    Examples:
      | size  | rest   |
      | 100   | 401    |
      | 200   | 801    |
      | 199   | 800    |
      | 33333 | 133333 |

  @F-006 @BR-3.2-6
  Scenario: All results that are long enough count together
    Given a user message of 800 characters
    And a result "a" of 100 characters
    And a result "b" of 100 characters in blocks
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens because "20 % >= 20 %"
    And the results "a" and "b" are offloaded

  @F-006 @BR-3.2-6 @BR-1.3-2
  Scenario: Short results do not count as offloadable
    Given a user message of 10 characters
    And 4 Bash results of 99 characters
    And a result "long" of 100 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "< 20 %"
    And the result "long" is kept

  @F-006 @BR-3.2-5
  Scenario: Short results count among all characters
    Given a user message of 6 characters
    And a result "short" of 99 characters
    And a result "shorter" of 95 characters
    And a result "long" of 200 characters
    And a user message of 600 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens because "20 % >= 20 %"
    And only the result "long" is offloaded

  @F-006 @BR-3.2-5
  Scenario Outline: Whatever is in the messages counts among all characters
    Given <other> of 801 characters
    And a result "long" of 200 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "19.98 % < 20 %"
    And the result "long" is kept

    Examples:
      | other                |
      | a user message       |
      | an assistant message |
      | a system message     |

  @F-006 @BR-3.2-5
  Scenario Outline: Every block of a message counts, a text and the input of a call as well
    Given the messages
      """
      [
       {"role": "assistant", "content": [
        {"type": "text", "text": "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789<text>"},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345<input>"}}]},
       {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"}]}
      ]
      """
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" <state> because "<numbers>"

    Examples:
      | text | input | state        | numbers        |
      |      |       | opens        | 20 % >= 20 %   |
      | x    |       | stays closed | 19.96 % < 20 % |
      |      | x     | stays closed | 19.96 % < 20 % |

  @F-006 @BR-3.2-5
  Scenario: The system prompt that is sent beside the messages does not count
    Given the request's system prompt has 50,000 characters
    And a user message of 800 characters
    And a result of 200 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens because "20 % >= 20 %"

  @F-006 @BR-3.2-5 @BR-3.2-6
  Scenario: In the chat shape of OpenAI the same is counted
    Given the messages have the OpenAI shape
    And a user message of 800 characters
    And a result of 200 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens because "20 % >= 20 %"
    And 1 result is offloaded

  @BR-1.3-1 @BR-5.3-1
  Scenario: Characters are compared, not tokens or bytes
    Given a user message of 301 characters
    And a result "toolu_1" that reads
      """
      上下文卸载方法把历史消息中工具调用返回的大段内容写入文件并在消息中替换为文件路径引用从而释放上下文空间。上下文卸载方法把历史消息中工具调用返回的大段内容写入文件并在消息中替换为文件路径引用从而释放上下
      """
    And an assistant message of 100 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "19.96 % < 20 %"
    And the result "toolu_1" is kept

  @UC-005 @BR-1.3-2 @BR-3.2-9 @BR-4.4-2 @BR-5.1-3
  Scenario: Behind an open gate each result is judged as ever
    Given a result "long" of 300 characters from Bash
    And a result "short" of 99 characters from Bash
    And a result "long" of 300 characters in blocks from Bash
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens
    And the result lists the files "tool-result-long.md" and "tool-result-long-1.md"
    And the result "short" is kept because "99 < 100 chars"
    And 600 characters are freed
    And the file of every offloaded item holds its original content
