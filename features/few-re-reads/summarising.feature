Feature: The history gives way late
  When the window is nearly full, a summary takes the place of the history. The newest message stays,
  and the user's newest, and the files that the agent read last come back.

  Background:
    Given the policy "few-re-reads"
    And the summarizer answers "The port is moved; the tests are next."

  Scenario: The request of a long turn stays behind the summary, before the newest result
    Given a user message of 160,000 tokens
    And the messages:
      | role      | text                         |
      | assistant | The port is moved.           |
      | user      | Now the tests, all of them.  |
    And a result "first" of 20 tokens from Bash
    And a result "second" of 20 tokens from Bash
    And a result "newest" of 20 tokens from Bash
    When the policy is applied
    Then the history is compacted
    And message 3 is kept
    And message 3 is the same object as before
    And the context has 5 messages
    And user and assistant take turns

  Scenario Outline: The files that it read last come back, whichever tool it reads with
    Given the working directory has the file "port.py" that reads "PORT = 8081"
    And a user message of 160,000 tokens
    And the messages:
      """
      [
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "c1", "name": "<tool>", "input": {"<field>": "port.py"}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "c1", "content": "PORT = 8080"}
        ]},
        {"role": "user", "content": "Go on."}
      ]
      """
    When the policy is applied
    Then the file "port.py" is restored

    Examples:
      | tool                        | field         |
      | Read                        | file_path     |
      | read                        | path          |
      | read                        | filePath      |
      | read_file                   | path          |
      | read_file                   | file_path     |
      | read_file                   | absolute_path |
      | read_file                   | target_file   |
      | read_file                   | filePath      |
      | str_replace_based_edit_tool | path          |
      | str_replace_editor          | path          |
      | file_editor                 | path          |

  Scenario: What a tool that asks the user returns is the user's answer
    Given a result "asked" of 20 tokens from AskUserQuestion
    And a result "ran" of 20 tokens from Bash
    When the policy is applied
    Then the user answer is kept
