Feature: Large results of Claude Code leave as they arrive
  A large result of a command, of a file that was read or of an MCP tool goes to a file before the
  model sees it. The model sees where it begins and ends, and which file to read for the rest.

  Background:
    Given the policy "claude-code"
    And the session "s1"

  Scenario Outline: A result leaves from 10,000 characters on, and a file that was read from 20,000
    When a result "a" of <size> characters arrives from <tool>
    Then <count> results are offloaded
    And <count> files are written

    Examples:
      | tool             | size  | count |
      | Bash             | 9999  | 0     |
      | Bash             | 10000 | 1     |
      | mcp__github__get | 9999  | 0     |
      | mcp__github__get | 10000 | 1     |
      | Read             | 19999 | 0     |
      | Read             | 20000 | 1     |

  Scenario: The size of a result decides, and for Read that of Read
    When a result "a" of 9999 characters arrives from Bash
    And a result "b" of 19999 characters arrives from Read
    Then the result "a" is kept by the rule "min_chars" because "9,999 < 10,000 chars"
    And the result "b" is kept by the rule "tools.Read.min_chars" because "19,999 < 20,000 chars"

  Scenario Outline: Other tools are left alone
    When a result "a" of 90000 characters arrives from <tool>
    Then nothing is offloaded

    Examples:
      | tool  |
      | Grep  |
      | Write |
      | Edit  |
      | Agent |

  Scenario: Each result has its own file, which holds all of it
    When a result "a" of 15000 characters arrives from Bash
    And a result "b" of 25000 characters arrives from Read
    Then only the files "Bash/a.md" and "Read/b.md" are written
    And the file of every offloaded item holds its original content

  Scenario: The agent sees the first and last 20 lines of a result, and which file to read
    When a result "a" of 15000 characters arrives from Bash
    Then the result "a" reads like "*[… 166 lines and 12118 characters are not shown …]*[The whole result of Bash, 206 lines, is in */Bash/a.md. To see more of it, call Read on that file with offset and limit, or search it with Grep.]"

  Scenario: The agent sees the first 60 lines of a file, and how to read others
    When a result "a" of 25000 characters arrives from Read
    Then the result "a" reads like "*[Lines 1-343 of *a.md were read; 283 lines and 20620 characters of them are not shown. To see more, call Read on *a.md with offset and limit, 200 lines at a time. A copy of what was read is in */Read/a.md]"

  Scenario Outline: Of a long line the first 200 characters are shown
    When a result "a" of 30000 characters in blocks arrives from <tool>
    Then the result "a" reads like "*0 lines and 29800 characters *are not shown*"

    Examples:
      | tool |
      | Bash |
      | Read |

  Scenario: What the agent reads back stays
    When a result "a" of 30000 characters arrives from Bash
    And the model reads the file of the result "a" with Read
    Then only the result "a" is offloaded

  Scenario: A full disk leaves the result where it is
    When the disk is full
    And a result "a" of 15000 characters arrives from Bash
    Then nothing is offloaded
    And 1 warning is given

  Scenario: The tool of a result is that of its call, which the session has seen
    Given the policy
      """
      extends: claude-code
      tools: {Bash: {min_chars: 20, placeholder: "[in {relative_path}]"}}
      """
    And the messages
      """
      [
        {"role": "user", "content": "List the files."},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "ls"}}
        ]}
      ]
      """
    When the policy is applied
    And these results arrive
      """
      {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "README.md pyproject.toml src tests docs"}
      ]}
      """
    Then the result "a" is offloaded
    And the file "Bash/a.md" is written
