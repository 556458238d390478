Feature: The file and its path
  The path is known beforehand: the caller's folder, the session, the id of the call. What is in
  the file is the whole content, for whoever wants to look it up later.

  Background:
    Given the policy "tool-direct-offload"
    And the session "session-abc123"

  @UC-001 @F-001 @BR-1.2-2 @BR-3.2-8
  Scenario: A text is written as it is
    Given the policy
      """
      extends: tool-direct-offload
      min_chars: 0
      """
    When a result "toolu_xyz" that reads "第一行 “引号” \\ \"quotes\"\r\nsecond line\twith a tab, {braces}, a face 😀 and a null \u0000 in it\n\n  no end" arrives
    Then the file "session-abc123/toolu_xyz.md" reads "第一行 “引号” \\ \"quotes\"\r\nsecond line\twith a tab, {braces}, a face 😀 and a null \u0000 in it\n\n  no end"

  @UC-002 @F-001 @BR-1.2-2 @BR-3.2-9
  Scenario: Blocks are written as the JSON of the whole list
    Given the policy
      """
      extends: tool-direct-offload
      min_chars: 0
      """
    When these results arrive
      """
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_xyz", "content": [
        {"type": "text", "text": "两个文件\nfound"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]}]}
      """
    Then the file "session-abc123/toolu_xyz.md" reads as follows
      """
      [{"type":"text","text":"两个文件\nfound"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]
      """

  @F-001 @BR-3.2-10
  Scenario Outline: The absolute path takes the place of the content
    Given the root folder "<folder>"
    When a result "toolu_xyz" of 1500 characters arrives
    Then the result "toolu_xyz" reads "[Tool result offloaded to file: {root}/session-abc123/toolu_xyz.md]"

    Examples:
      | folder           |
      | .offload         |
      | a/deep/er folder |
      | 卸载              |

  @F-002 @BR-3.2-3 @BR-3.2-17 @BR-3.2-18 @BR-3.2-19
  Scenario: The folder is that of the session, the name the id of the call
    Given the root folder ".offload"
    When a result "toolu_xyz" of 1500 characters arrives
    Then the file of the result "toolu_xyz" is "{root}/session-abc123/toolu_xyz.md"
    And the root folder holds only the file "session-abc123/toolu_xyz.md"

  @F-002 @BR-3.2-2 @BR-3.2-17
  Scenario: Each session has a folder of its own
    When a result "toolu_xyz" of 1500 characters arrives
    Then the root folder holds only the file "session-abc123/toolu_xyz.md"
    Given the session "session-def456"
    When a result "toolu_xyz" of 1600 characters arrives
    Then the root folder holds only the files "session-abc123/toolu_xyz.md" and "session-def456/toolu_xyz.md"
    And the file "session-abc123/toolu_xyz.md" holds the original content of the first result "toolu_xyz"
    And the file "session-def456/toolu_xyz.md" holds the original content of the last result "toolu_xyz"

  @F-002 @BR-3.2-18 @BR-3.2-21
  Scenario Outline: The id is the name, unchanged
    When a result "<id>" of 1500 characters arrives
    Then the root folder holds only the file "session-abc123/<id>.md"

    Examples:
      | id                            |
      | toolu_xyz                     |
      | toolu_01A09q90qw90lq917835lq9 |
      | call_9pP0.x-1                 |

  @F-002 @BR-3.2-21 @BR-4.2-1
  Scenario Outline: No id of a call leads out of the session's folder
    When a result "<id>" of 1500 characters arrives
    Then the root folder holds only the file "session-abc123/<file>"
    And the result "<id>" reads "[Tool result offloaded to file: {root}/session-abc123/<file>]"
    And every file is below the root folder

    Examples:
      | id             | file                  |
      | ../../secret   | ..%2F..%2Fsecret.md   |
      | /etc/passwd    | %2Fetc%2Fpasswd.md    |
      | ..             | %2E%2E.md             |
      | C:\\\\x        | C%3A%5Cx.md           |
      | a b            | a%20b.md              |
      | nul\\u0000byte | nul%00byte.md         |
      | 工具           | %E5%B7%A5%E5%85%B7.md |

  @F-002 @BR-3.2-2 @BR-4.2-1
  Scenario Outline: No id of a session leads out of the folder
    Given the session "<id>"
    When a result "toolu_xyz" of 1500 characters arrives
    Then the root folder holds only the file "<folder>/toolu_xyz.md"
    And every file is below the root folder

    Examples:
      | id       | folder             |
      | ../other | ..%2Fother         |
      | ..       | %2E%2E             |
      | /        | %2F                |
      | 会话     | %E4%BC%9A%E8%AF%9D |

  @F-002 @BR-3.2-21
  Scenario: Results without an id do not overwrite one another
    When a result "" of 1500 characters arrives
    And a result "" of 1600 characters arrives
    Then 2 files are written
    And the file of every result is "session-abc123/sha256-*.md"
    And the file of every result holds its original content

  @BR-3.2-3 @BR-4.2-1
  Scenario Outline: The folder is the one that the caller names
    Given the root folder "<folder>"
    When a result "toolu_xyz" of 1500 characters arrives
    Then the root folder holds only the file "session-abc123/toolu_xyz.md"

    Examples:
      | folder          |
      | up/../out       |
      | a b/100% {mine} |

  @F-002 @BR-3.2-20 @BR-5.3-3
  Scenario: A folder that is not there is made, with those above it
    Given the root folder "not/there/yet"
    And the root folder does not exist
    When a result "toolu_xyz" of 1500 characters arrives
    Then the root folder holds only the file "session-abc123/toolu_xyz.md"

  @F-001 @BR-3.2-14 @BR-5.3-2
  Scenario: A second result under one id overwrites the file of the first
    When a result "toolu_xyz" of 1500 characters arrives
    And a result "toolu_xyz" of 1600 characters arrives
    Then the root folder holds only the file "session-abc123/toolu_xyz.md"
    And the file "session-abc123/toolu_xyz.md" holds the original content of the 2nd result "toolu_xyz"
    And the result lists the file "session-abc123/toolu_xyz.md"

  @F-001 @BR-3.2-14
  Scenario: A shorter result overwrites the whole of a longer one
    When a result "toolu_xyz" of 9000 characters arrives
    And a result "toolu_xyz" of 1000 characters arrives
    Then the file "session-abc123/toolu_xyz.md" holds the original content of the 2nd result "toolu_xyz"

  @F-001 @BR-3.2-4
  Scenario: A writer of the caller's overwrites the earlier file of the id
    Given a writer writes the session's files
    When a result "twice" of 3000 characters arrives
    And a result "twice" of 2000 characters arrives
    Then the file of the 2nd result "twice" is "session-abc123/twice.md"
    And only the file "session-abc123/twice.md" is written by the writer
    And the file "session-abc123/twice.md" holds the original content of the 2nd result "twice"

  @F-001 @BR-3.2-14 @BR-5.3-2
  Scenario: Of two results under one id in one message the last one stays in the file
    When these results arrive
      | id        | size            |
      | toolu_xyz | 1500 characters |
      | toolu_xyz | 1600 characters |
    Then the root folder holds only the file "session-abc123/toolu_xyz.md"
    And the file "session-abc123/toolu_xyz.md" holds the original content of the 2nd result "toolu_xyz"
    And every result reads "[Tool result offloaded to file: {root}/session-abc123/toolu_xyz.md]"

  @F-001 @BR-3.2-14
  Scenario: A file that was there before is overwritten too
    Given a file "session-abc123/toolu_xyz.md" that reads "old"
    When a result "toolu_xyz" of 1500 characters arrives
    Then the file "session-abc123/toolu_xyz.md" holds the original content of the result "toolu_xyz"

  @BR-1.3-3
  Scenario: Files stay, whatever comes after them
    Given a file "session-abc123/notes.md" that reads "mine"
    When a result "first" of 1500 characters arrives
    And 20 Bash results of 1500 characters arrive
    And the process restarts
    And a result "last" of 1500 characters arrives
    Then the file "session-abc123/first.md" holds the original content of the result "first"
    And the file "session-abc123/notes.md" reads "mine"
    And 22 files are written
