Feature: Room is made when the context fills up
  From 80 % of the window on, what is large goes to files and out of the list, one type after the
  other, until less than 60 % is used.

  Background:
    Given the policy "context-filesystem"

  @BR-4.2-1
  Scenario Outline: Nothing goes before the window is filled to 80 %
    Given the request's system prompt has <system> tokens
    And a session with 10 Bash results of 5,000 tokens
    When the policy is applied
    Then the gate "tokens" of the step "make-room" <gate>
    And <count> results are dropped

    Examples:
      | system  | gate         | count |
      | 109,987 | stays closed | no    |
      | 109,988 | opens        | 9     |

  @BR-4.2-2
  Scenario: Tool results go first, and nothing else when that is enough
    Given the request's system prompt has 90,000 tokens
    And a user message of 40,000 characters that begins with "Base directory for this skill:"
    And a user message of 5,000 tokens
    And 10 Bash results of 6,000 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then every Bash result is dropped by the step "make-room"
    And every skill prompt is kept because "until_reached"
    And every user message is kept

  @BR-4.2-2 @BR-5-3
  Scenario: Skill prompts go before what the user wrote
    Given the request's system prompt has 110,000 tokens
    And a user message of 5,000 tokens
    And a user message of 40,000 characters that begins with "Base directory for this skill:"
    And 10 Bash results of 6,000 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then every Bash result is dropped
    And every skill prompt is dropped
    And the first user message is kept because "until_reached"

  @BR-4.2-2 @BR-5-2
  Scenario: What the user wrote goes last, except the newest
    Given the request's system prompt has 117,000 tokens
    And a user message of 5,000 tokens
    And a user message of 6,000 tokens
    And 10 Bash results of 6,000 tokens
    And a user message of 7,000 tokens
    When the policy is applied
    Then every Bash result is dropped
    And the first user message is dropped
    And the 2nd user message is dropped
    And the last user message is kept

  @BR-4.2-2 @BR-5-2
  Scenario: The newest user message stays while the agent works on it
    Given the request's system prompt has 150,000 tokens
    And a user message of 5,000 tokens
    And a user message of 6,000 tokens
    And 2 Bash results of 100 tokens
    When the policy is applied
    Then the first user message is dropped
    And the last user message is kept because "the newest user message stays"

  @BR-4.2-2
  Scenario Outline: It stops after the type with which less than 60 % is used
    Given the request's system prompt has <system> tokens
    And a user message of 5,000 tokens
    And 10 Bash results of 6,000 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then every Bash result is dropped
    And <count> user messages are dropped

    Examples:
      | system  | count |
      | 114,997 | no    |
      | 114,998 | 1     |

  @BR-4.2-4
  Scenario: What no model has seen yet stays
    Given the request's system prompt has 145,000 tokens
    And a session with a Bash result of 6,000 tokens
    And 2 parallel Bash results of 6,000 tokens
    When the policy is applied
    Then the first result is dropped
    And the 2nd result is kept because "recent"
    And the 3rd result is kept because "recent"
    Given a user message of 4,000 tokens
    When the policy is applied again
    Then 3 results are dropped

  @BR-4.2-3
  Scenario: What retired before is skipped, and keeps its placeholder
    Given the tool read_file is ephemeral and keeps 1 result
    And a session with a result "a" of 6,000 tokens from read_file
    And a result "b" of 6,000 tokens from read_file
    When the policy is applied
    Then only the result "a" is offloaded
    And only the file "tool_result/read_file/a.json" is written
    Given the request's system prompt has 155,000 tokens
    And a user message that reads "go on"
    When the policy is applied again
    Then the result "b" is dropped
    And the result "a" is offloaded
    And the file of the result "a" holds its original content
    And only the files "tool_result/read_file/a.json", "tool_result/read_file/b.json" and "tool_call/read_file/b.json" are written

  @BR-4.2-3 @BR-4.2-5
  Scenario: What retires in the same turn is skipped as well
    Given the request's system prompt has 155,000 tokens
    And the tool read_file is ephemeral and keeps 1 result
    And a session with a result "a" of 6,000 tokens from read_file
    And a result "b" of 6,000 tokens from read_file
    And a user message that reads "go on"
    When the policy is applied
    Then the result "a" is offloaded by the step "retire"
    And the result "b" is dropped by the step "make-room"

  @BR-4.2-4 @BR-5-1
  Scenario Outline: From 2,000 tokens on an item goes, below it stays
    Given the request's system prompt has 155,000 tokens
    And a session with a Bash result of <size> tokens
    And a Bash result of 6,000 tokens
    And a Bash result of 10 tokens
    When the policy is applied
    Then the first result is <state>

    Examples:
      | size  | state   |
      | 1,999 | kept    |
      | 2,000 | dropped |
      | 2,001 | dropped |

  @BR-4.2-4 @BR-5-2
  Scenario Outline: The same threshold holds for what the user wrote
    Given the request's system prompt has 155,000 tokens
    And a user message of <size> tokens
    And a Bash result of 6,000 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then the first user message is <state>

    Examples:
      | size  | state   |
      | 1,999 | kept    |
      | 2,000 | dropped |

  @BR-4.2-4 @BR-5-3
  Scenario Outline: The same threshold holds for skill prompts
    Given the request's system prompt has 155,000 tokens
    And a Bash result of 6,000 tokens
    And a user message of <size> characters that begins with "Base directory for this skill:"
    And a user message that reads "go on"
    When the policy is applied
    Then every skill prompt is <state>

    Examples:
      | size   | state   |
      | 7,000  | kept    |
      | 9,000  | dropped |

  @BR-4.2-5 @BR-4.2-6
  Scenario: What goes is in a file, and out of the list
    Given the request's system prompt has 150,000 tokens
    And a session with a Bash result of 6,000 tokens
    And a result "big" of 6,000 tokens from Bash
    And a user message that reads "go on"
    When the policy is applied
    Then the result "big" is dropped
    And the context has 2 messages
    And the file of the result "big" holds its original content
    And the result "big" is listed as offloaded
    And the result "big" is listed as destroyed

  @BR-5-4
  Scenario: What the agent wrote never goes, however long
    Given the request's system prompt has 148,000 tokens
    And a session with an assistant message of 9,000 tokens
    And a Bash result of 6,000 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then every Bash result is dropped
    And every assistant message is kept

  @BR-5-6
  Scenario: The system prompt never goes
    Given a system message of 170,000 tokens
    And a session with a Bash result of 10 tokens
    When the policy is applied
    Then every system prompt is kept
