Feature: What is in the place of a result
  The model is told where the content went, by a path that is the same wherever the folder lies,
  and nothing else of the message changes.

  Background:
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is not set
    And the policy "context-offload"

  @UC-001 @F-003 @BR-1.2-2 @BR-3.2-3 @BR-3.2-26 @BR-3.2-27
  Scenario: The path of the file takes the place of the content
    Given a result "toolu_01abc" of 2500 characters from Bash
    When the policy is applied
    Then the result "toolu_01abc" reads "[Content offloaded to: ./tool-result-toolu_01abc.md]"

  @F-003 @BR-3.2-27
  Scenario Outline: The path is relative to the output folder
    Given the root folder "<folder>"
    And a result "toolu_01abc" of 2500 characters from Bash
    When the policy is applied
    Then the result "toolu_01abc" reads "[Content offloaded to: ./tool-result-toolu_01abc.md]"
    And the file of the result "toolu_01abc" is "{root}/tool-result-toolu_01abc.md"

    Examples:
      | folder           |
      | out              |
      | a/deep/er folder |
      | 卸载              |

  @F-003 @BR-3.2-28
  Scenario: The content becomes a string, whether it was one or was blocks
    Given a result "text" of 300 characters from Bash
    And a result "blocks" of 300 characters in blocks from Bash
    When the policy is applied
    Then the content of the results "text" and "blocks" is a string
    And the result "blocks" reads "[Content offloaded to: ./tool-result-blocks.md]"

  @F-003 @BR-3.2-28
  Scenario: The rest of the block stays, byte for byte
    Given the messages
      """
      [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "cache_control": {"type": "ephemeral"}, "content": [
         {"type": "text", "text": "命令失败：找不到文件。The command failed, and said so in more than one hundred characters, of which this is the last."},
         {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]},
        {"type": "text", "text": "继续"}]}]
      """
    When the policy is applied
    Then the messages are
      """
      [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "cache_control": {"type": "ephemeral"}, "content": "[Content offloaded to: ./tool-result-toolu_1.md]"},
        {"type": "text", "text": "继续"}]}]
      """
    And the file "tool-result-toolu_1.md" holds the original content of the result "toolu_1"

  @BR-1.3-4 @BR-3.2-26
  Scenario: Nothing of the content is shown, no summary and no excerpt
    Given a result "a" that reads "Once upon a time there was a result so long that nobody wanted to read it again, and so it went away to a file."
    And a result "b" that reads "从前有一个工具返回的结果，它实在太长了，谁也不想再读一遍，于是它就搬到了一个文件里去住，从此以后大家只需要记住它的路径，想看的时候再去看就好了。这个结果一共有一百多个字符，所以它应该被卸载到文件中，而不是留在上下文里面占地方。"
    When the policy is applied
    Then the result "a" reads "[Content offloaded to: ./tool-result-a.md]"
    And the result "b" reads "[Content offloaded to: ./tool-result-b.md]"

  @F-003 @BR-3.2-13 @BR-3.2-26
  Scenario: Each of two results under one id names its own file
    Given a result "twice" of 300 characters from Bash
    And a result "twice" of 400 characters from Bash
    When the policy is applied
    Then the first result "twice" reads "[Content offloaded to: ./tool-result-twice.md]"
    And the 2nd result "twice" reads "[Content offloaded to: ./tool-result-twice-1.md]"

  @BR-1.3-3
  Scenario: What was offloaded is not brought back, and not offloaded again
    Given the caller passes the edited messages back
    And a result "a" of 300 characters from Bash
    When the policy is applied
    Then the result "a" reads "[Content offloaded to: ./tool-result-a.md]"
    When the policy is applied again
    Then the same list is returned
    And the root folder holds only the file "tool-result-a.md"

  @BR-1.3-3
  Scenario: A placeholder that is itself long is not offloaded again
    Given the caller passes the edited messages back
    And a result "toolu_an_id_that_makes_the_placeholder_longer_than_one_hundred_characters_1" of 300 characters
    And a result "b" of 300 characters
    When the policy is applied
    Then 2 results are offloaded
    When the policy is applied again
    Then the same list is returned
    And 2 files are written
