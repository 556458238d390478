Feature: The history of a small context gives way late
  When old results have left and the window is nearly full all the same, a summary takes the place
  of the history, and the request stays with it.

  Background:
    Given the policy "small-context"
    And the summarizer answers "The port is moved; the tests are next."

  Scenario: It begins at 80 % of the window
    Given a user message of 100,000 tokens
    And a user message of 60,000 tokens
    When the policy is applied
    Then the history is compacted

  Scenario: The newest message stays behind the summary
    Given the policy:
      """
      extends: small-context
      compaction: {wording: {summary: "[Conversation compressed]\n\n{summary}"}}
      """
    And a user message of 160,000 tokens
    And the messages:
      | role      | text               |
      | assistant | The port is moved. |
      | user      | Now the tests.     |
    When the policy is applied
    Then the messages are:
      """
      [
        {"role": "user", "content": "[Conversation compressed]\n\nThe port is moved; the tests are next."},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."},
        {"role": "user", "content": "Now the tests."}
      ]
      """

  Scenario: Old results leave first, and that may be enough
    Given a session with 7 Bash results of 25,000 tokens
    When the policy is applied
    Then 2 results are offloaded
    And the history is not compacted

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
