Feature: What is ephemeral retires
  A tool says how many of its results stay. Before each model call the older ones go to files.

  Background:
    Given the policy "context-filesystem"
    And the tool read_file is ephemeral and keeps 3 results

  @BR-3.2-1 @BR-4.1-2 @BR-4.1-3 @BR-2.2-1
  Scenario: The newest results of an ephemeral tool stay, those before them retire
    Given a session with 5 read_file results of 300 tokens
    When the policy is applied
    Then 2 results are offloaded by the step "retire"
    And the first result is offloaded because "5th newest of read_file, 3 kept"
    And the 2nd result is offloaded
    And the 3rd result is kept

  @BR-4.1-2 @BR-4.1-3
  Scenario: Each tool has a number of its own
    Given the tool search is ephemeral and keeps 1 result
    And a session with 3 read_file results of 300 tokens
    And 3 search results of 300 tokens
    When the policy is applied
    Then 2 search results are offloaded
    And the last search result is kept
    And every read_file result is kept

  @BR-3.2-1 @BR-4.1-2 @BR-4.1-3
  Scenario Outline: Results of parallel calls are counted one by one
    Given the messages have the <shape> shape
    And the tool read_file is ephemeral and keeps <kept> results
    And a session with <count> parallel read_file results of 300 tokens
    When the policy is applied
    Then <retired> results are offloaded
    And the last result is kept because "recent"

    Examples:
      | shape            | kept | count | retired |
      | Anthropic        | 2    | 5     | 3       |
      | OpenAI           | 2    | 5     | 3       |
      | OpenAI Responses | 2    | 5     | 3       |
      | Anthropic        | 1    | 2     | 1       |

  @BR-4.1-2 @BR-4.1-3
  Scenario: Of parallel calls of two tools each tool has a number of its own
    Given the tool read_file is ephemeral and keeps 1 result
    And the tool search is ephemeral and keeps 2 results
    And the messages
      | role      | type   | tool      | id | size       |
      | user      |        |           |    | 20 tokens  |
      | assistant | call   | read_file | a  | 20 tokens  |
      | and       | call   | search    | b  | 20 tokens  |
      | and       | call   | read_file | c  | 20 tokens  |
      | and       | call   | search    | d  | 20 tokens  |
      | user      | result |           | a  | 300 tokens |
      | and       | result |           | b  | 300 tokens |
      | and       | result |           | c  | 300 tokens |
      | and       | result |           | d  | 300 tokens |
    When the policy is applied
    Then only the result "a" is offloaded

  @BR-4.1-3 @BR-2.2-1
  Scenario: A tool that is not ephemeral retires nothing, however long its results
    Given a session with 9 Bash results of 3,000 tokens
    When the policy is applied
    Then the same list is returned
    And every Bash result is kept

  @BR-4.1-1
  Scenario: Nothing retires when a result arrives, only before a model is called
    Given a session with 3 read_file results of 300 tokens
    When a result "fourth" of 300 tokens arrives from read_file
    Then nothing is offloaded
    When the policy is applied before the next model call
    Then only the first result is offloaded

  @BR-4.1-4 @BR-2.2-3 @BR-2.2-4 @BR-6.1-3
  Scenario: What retires is saved first, whatever its size
    Given a result "tiny" of 60 tokens from read_file
    And a result "long" of 9,000 tokens from read_file
    And 3 read_file results of 300 tokens
    When the policy is applied
    Then only the results "tiny" and "long" are offloaded
    And the file of every offloaded item holds its original content
    And every offloaded item can be read back

  @BR-4.1-4
  Scenario: What its placeholder would not make smaller stays where it is
    Given a result "short" of 20 tokens from read_file
    And 3 read_file results of 300 tokens
    When the policy is applied
    Then the result "short" is kept
    And no file is written

  @BR-1-2
  Scenario: A result stays while a call made beside it has no answer
    Given the tool Bash is ephemeral and keeps 0 results
    And the messages
      | role | type   | id | tool | size       |
      | user |        |    |      | 20 tokens  |
      |      | call   | a  | Bash |            |
      | and  | call   | b  | Bash |            |
      |      | result | a  | Bash | 300 tokens |
    When the policy is applied
    Then the result "a" is kept
    And no file is written

  @BR-4.1-5 @BR-2.2-2
  Scenario: What retired is marked as destroyed
    Given a session with 4 read_file results of 300 tokens
    When the policy is applied
    Then the first result is listed as destroyed
    And the 2nd result is listed as kept

  @BR-4.1-6 @BR-2.1-3 @BR-2.1-4
  Scenario: What retired is marked as offloaded, with the path of its file
    Given a session with 4 read_file results of 300 tokens
    When the policy is applied
    Then the first result is listed as offloaded
    And the 2nd result is listed as kept

  @BR-4.1-6 @BR-2.1-4
  Scenario: No mark goes into the messages
    Given the messages
      """
      [{"role": "user", "content": "the task"},
       {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read_file", "input": {}},
         {"type": "tool_use", "id": "b", "name": "read_file", "input": {}}]},
       {"role": "user", "content": [
         {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
         {"type": "tool_result", "tool_use_id": "b", "content": "ok"}]}]
      """
    And a result "c" of 300 tokens from read_file
    And 3 read_file results of 300 tokens
    When the policy is applied
    Then the result "c" is offloaded
    And messages 1 to 3 are the same objects as before
    And the result "c" reads as follows
      """
      [Content offloaded]
      Path: {path}
      Use Read tool to view details.
      """

  @BR-4.1-3 @BR-4.1-5
  Scenario: Each item retires once
    Given a session with 5 read_file results of 300 tokens
    When the policy is applied
    Then 2 results are newly offloaded
    When the policy is applied again
    Then nothing is newly offloaded
    And 2 results are offloaded
    When the session continues for 2 turns with a read_file result of 300 tokens each
    Then in every turn the prefix is unchanged up to the first new decision
    And 4 results are offloaded

  @BR-4.1-3
  Scenario: A process that starts anew knows what retired
    Given a session with 5 read_file results of 300 tokens
    When the policy is applied
    And the process restarts
    And the policy is applied again
    Then 2 results are offloaded
    But nothing is newly offloaded
    And the first result is listed as offloaded

  @BR-4.1-4 @BR-6.1-2
  Scenario: What cannot be saved stays in the context
    Given a session with 5 read_file results of 300 tokens
    When the disk is full
    And the policy is applied
    Then the same list is returned
    And 1 warning is given
    And every read_file result is listed as kept
    When the disk has room again
    And the policy is applied again
    Then 2 results are offloaded

  @BR-6.1-1 @BR-6.1-3
  Scenario: An item that a user's own type calls ephemeral retires as well
    Given the policy
      """
      extends: context-filesystem
      items:
        reminder:
          match: {type: user_message, text: {startswith: "Reminder:"}}
          offload: true
          keep_recent: 1
      """
    And 3 user messages of 900 characters that begin with "Reminder:"
    And a user message that reads "go on"
    When the policy is applied
    Then 2 reminders are offloaded
