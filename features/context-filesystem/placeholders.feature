Feature: What is in the place of what left
  The agent sees where the content is, and reads it with the tool that it has.

  Background:
    Given the policy "context-filesystem"
    And the tool Read is ephemeral and keeps 1 result

  @BR-3.5-1 @BR-1-1 @BR-2.2-6 @BR-6.3-1
  Scenario: The placeholder names the file by its absolute path
    Given a session with a result "a" of 300 tokens from Read
    And a result "b" of 300 tokens from Read
    When the policy is applied
    Then the result "a" reads as follows
      """
      [Content offloaded]
      Path: {root}/tool_result/Read/a.json
      Use Read tool to view details.
      """
    And the paths of the files are absolute

  @BR-1-1
  Scenario: The context holds fewer tokens, nothing of the content is left in it
    Given a session with a result "a" of 9,000 tokens from Read
    And a result "b" of 300 tokens from Read
    When the policy is applied
    Then the context has under 500 tokens

  @BR-1-2 @BR-6.3-3
  Scenario: The structure of the messages stays, call and result as they were
    Given the messages
      """
      [{"role": "user", "content": "the task"},
       {"role": "assistant", "content": [
         {"type": "text", "text": "I look."},
         {"type": "tool_use", "id": "a", "name": "Read", "input": {"path": "one"}}]},
       {"role": "user", "content": [
         {"type": "tool_result", "tool_use_id": "a", "is_error": false, "content": [
           {"type": "text", "text": "long words, many of them, and of no great use; long words, many of them, and of no great use; long words, many of them, and of no great use; long words, many of them, and of no great use; long words, many of them, and of no great use; long words, many of them, and of no great use; long words, many of them, and of no great use; long words, many of them, and of no great use"}]}]}]
      """
    And a result "b" of 300 tokens from Read
    And a user message that reads "go on"
    When the policy is applied
    Then the result "a" is offloaded
    And the context has 6 messages
    And messages 1 to 2 are the same objects as before
    And unchanged messages are the same objects
    And changed messages are deep copies
    And the input is not changed

  @BR-1-3 @BR-6.3-2
  Scenario: The agent reads the file, and what it reads is not offloaded at once
    Given a session with a result "a" of 300 tokens from Read
    And a result "b" of 300 tokens from Read
    When the policy is applied
    And the model reads the file of the result "a" with Read
    And the policy is applied again
    Then the last Read result is kept because "recent"
    And the result "a" is offloaded

  @BR-1-2
  Scenario: In the chat shape of OpenAI it is the same
    Given the messages have the OpenAI shape
    And a session with a result "a" of 300 tokens from Read
    And a result "b" of 300 tokens from Read
    When the policy is applied
    Then the result "a" reads like "[Content offloaded]*Path: *a.json*"
    And the context has 5 messages
