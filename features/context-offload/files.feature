Feature: The files
  Each result has a file of its own, named by the id of its call, with the whole content in it. No
  file that holds another content is ever overwritten, and no id leads out of the folder.

  Background:
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is not set
    And the policy "context-offload"

  @F-001 @BR-3.2-10
  Scenario Outline: A file has the name of its result
    Given a result "<id>" of 300 characters from Bash
    When the policy is applied
    Then the file of the result "<id>" is "tool-result-<id>.md"
    And the root folder holds only the file "tool-result-<id>.md"
    And the file of the result "<id>" holds its original content

    Examples:
      | id                             |
      | toolu_01abc                    |
      | toolu_01A09q90qw90lq917835lq9  |
      | call_9pP0.x-1                  |
      | chatcmpl-tool-0f6a             |

  @F-001 @BR-3.2-1
  Scenario: A text is written as it is
    Given a result "toolu_1" that reads "第一行 “引号” \\ \"quotes\"\r\nsecond line\twith a tab, {braces}, a face 😀 and a null \u0000 in it\n\n  the last line is long enough, and has no end"
    When the policy is applied
    Then the result "toolu_1" is offloaded
    And the file "tool-result-toolu_1.md" reads "第一行 “引号” \\ \"quotes\"\r\nsecond line\twith a tab, {braces}, a face 😀 and a null \u0000 in it\n\n  the last line is long enough, and has no end"

  @F-001 @BR-3.2-23 @BR-3.2-28
  Scenario: Blocks are written as their JSON
    Given the messages
      """
      [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [
        {"type": "text", "text": "两个文件\nfound, and more words than are needed to make it one hundred characters"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]}]}]
      """
    When the policy is applied
    Then the file "tool-result-toolu_1.md" reads as follows
      """
      [{"type":"text","text":"两个文件\nfound, and more words than are needed to make it one hundred characters"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]
      """

  @F-001 @BR-3.2-13
  Scenario: Further results under one id get a number
    Given a result "twice" of 300 characters from Bash
    And a result "twice" of 400 characters from Bash
    And a result "twice" of 500 characters from Bash
    When the policy is applied
    Then the result lists the files "tool-result-twice.md", "tool-result-twice-1.md" and "tool-result-twice-2.md"
    And the file of the 2nd result "twice" is "tool-result-twice-1.md"
    And the file of the 3rd result "twice" is "tool-result-twice-2.md"
    And the file of every result holds its original content

  @F-001 @BR-3.2-13
  Scenario: A writer of the caller's keeps the file of an earlier result under one id
    Given the policy:
      """
      extends: context-offload
      steps:
        - {name: arriving, do: offload, on: arrival}
      """
    And a writer writes the session's files
    When a result "twice" of 300 characters arrives
    And a result "twice" of 400 characters arrives
    Then the file of the last result "twice" is "tool-result-twice-1.md"
    And only the files "tool-result-twice.md" and "tool-result-twice-1.md" are written by the writer
    And the file "tool-result-twice.md" holds the original content of the 1st result "twice"

  @F-001 @BR-3.2-13
  Scenario: Results under one id get files of their own even when they are equal
    Given a result "twice" from Bash that reads
      """
      Nothing has changed since the last time; the working tree is clean, and the branch is up to date with its origin.
      """
    And a result "twice" from Bash that reads
      """
      Nothing has changed since the last time; the working tree is clean, and the branch is up to date with its origin.
      """
    When the policy is applied
    Then the result lists the files "tool-result-twice.md" and "tool-result-twice-1.md"
    And the file of every result holds its original content

  @F-001 @BR-3.2-13
  Scenario: A short result under the same id takes no number
    Given a result "twice" of 30 characters from Bash
    And a result "twice" of 300 characters from Bash
    And a result "twice" of 40 characters from Bash
    And a result "twice" of 400 characters from Bash
    When the policy is applied
    Then the result lists the files "tool-result-twice.md" and "tool-result-twice-1.md"
    And the file of the 2nd result "twice" is "tool-result-twice.md"
    And the file of the last result "twice" is "tool-result-twice-1.md"

  @F-001 @BR-3.2-13 @BR-5.3-3
  Scenario: An id that looks like a numbered one does not take another's file
    Given a result "a" of 300 characters
    And a result "a" of 400 characters
    And a result "a-1" of 500 characters
    When the policy is applied
    Then the result lists the files "tool-result-a.md", "tool-result-a-1.md" and "tool-result-a-1-1.md"
    And the file of every result holds its original content

  @F-001 @BR-3.2-7
  Scenario: The oldest result is the first to get its file
    Given a result "b" of 300 characters
    And a result "a" of 900 characters
    And a result "c" of 600 characters
    When the policy is applied
    Then the result lists the files "tool-result-b.md", "tool-result-a.md" and "tool-result-c.md"

  @F-001 @BR-3.2-13
  Scenario: A file that is in the folder already is not overwritten
    Given a file "tool-result-a.md" that reads "somebody else's"
    And a result "a" of 300 characters
    When the policy is applied
    Then the result "a" reads "[Content offloaded to: ./tool-result-a-1.md]"
    And the file "tool-result-a.md" reads "somebody else's"
    And the file "tool-result-a-1.md" holds the original content of the result "a"

  @F-001 @BR-3.2-13
  Scenario: A folder that has the name already is in nobody's way
    Given a file "tool-result-a.md/inside" that reads "somebody else's"
    And a result "a" of 300 characters
    When the policy is applied
    Then the file of the result "a" is "tool-result-a-1.md"
    And the file of the result "a" holds its original content

  @BR-3.2-10 @BR-5.3-3
  Scenario Outline: No id leads out of the folder
    Given a result "<id>" of 300 characters
    When the policy is applied
    Then the root folder holds only the file "<file>"
    And the result "<id>" reads "[Content offloaded to: ./<file>]"
    And every file is below the root folder
    And the file of every result holds its original content

    Examples:
      | id              | file                                |
      | ../../secret    | tool-result-..%2F..%2Fsecret.md     |
      | /etc/passwd     | tool-result-%2Fetc%2Fpasswd.md      |
      | ..              | tool-result-%2E%2E.md               |
      | .               | tool-result-%2E.md                  |
      | ~/x             | tool-result-%7E%2Fx.md              |
      | C:\\\\x         | tool-result-C%3A%5Cx.md             |
      | a b             | tool-result-a%20b.md                |
      | 100%            | tool-result-100%25.md               |
      | a%2Fb           | tool-result-a%252Fb.md              |
      | call:1*?        | tool-result-call%3A1%2A%3F.md       |
      | nul\\u0000byte  | tool-result-nul%00byte.md           |
      | line\\nbreak    | tool-result-line%0Abreak.md         |
      | 工具            | tool-result-%E5%B7%A5%E5%85%B7.md   |

  @BR-3.2-10 @BR-5.3-3
  Scenario: An id of 120 bytes is a name, a longer one is named by its hash
    Given a result "toolu_120_bytes_56789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678" of 300 characters
    And a result "toolu_121_bytes_567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789" of 300 characters
    When the policy is applied
    Then the file of the first result is "tool-result-toolu_120_bytes_56789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678.md"
    And the file of the 2nd result is "tool-result-sha256-57b0442ac03a826f.md"
    And the file of every result holds its original content

  @BR-3.2-10 @BR-5.3-3
  Scenario: Results without an id do not share a file
    Given a result "" of 300 characters
    And a result "" of 400 characters
    When the policy is applied
    Then 2 results are offloaded
    And 2 files are written
    And the file of every result is "tool-result-sha256-*.md"
    And the file of every result holds its original content

  @F-005 @BR-3.2-12 @BR-3.2-32
  Scenario: A folder that is not there is made, with those above it
    Given the root folder "not/there/yet"
    And the root folder does not exist
    And a result "a" of 300 characters from Bash
    When the policy is applied
    Then the file "tool-result-a.md" holds the original content of the result "a"

  @F-005 @BR-3.2-33
  Scenario: A folder that is there is no error, and keeps what is in it
    Given the root folder exists
    And a file "notes.md" that reads "mine"
    And a result "a" of 300 characters from Bash
    When the policy is applied
    Then the root folder holds only the files "notes.md" and "tool-result-a.md"
    And the file "notes.md" reads "mine"

  @F-001 @BR-3.2-23
  Scenario: Half a character in a block is escaped, as JSON.stringify escapes it
    Given the messages
      """
      [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [
        {"type": "text", "text": "\ud83d is half of a face, and these words make the whole one hundred characters long"}]}]}]
      """
    When the policy is applied
    Then the file "tool-result-toolu_1.md" reads as follows
      """
      [{"type":"text","text":"\ud83d is half of a face, and these words make the whole one hundred characters long"}]
      """
