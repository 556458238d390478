Feature: One call offloads one result
  `offload_tool_result` is the preset `tool-direct-offload` for a caller that has one message and has
  judged its length.

  Background:
    Given the policy "tool-direct-offload"
    And the session "session-abc123"
    And a result "toolu_xyz" of 1500 characters

  @F-001 @BR-3.2-6
  Scenario Outline: The function deducts the placeholder from the characters freed
    Given a result "toolu_xyz" of <size> characters
    When the function <function> is called
    Then <amount> characters are freed
    And the characters freed, net of placeholders, add up

    Examples:
      | function                  | size | amount          |
      | offload_tool_result       | 1500 | fewer than 1500 |
      | offload_tool_result_async | 1500 | fewer than 1500 |
      | offload_tool_result       | 1    | fewer than 0    |
      | offload_tool_result_async | 1    | fewer than 0    |

  @F-001 @BR-3.2-7 @BR-3.2-19
  Scenario Outline: The function returns the absolute path of the file
    When the function <function> is called
    Then the result lists the file "session-abc123/toolu_xyz.md"
    And the paths of the files are absolute

    Examples:
      | function                  |
      | offload_tool_result       |
      | offload_tool_result_async |

  @F-001 @BR-3.2-5 @BR-3.2-10
  Scenario Outline: The function leaves the absolute path in the place of the content
    When the function <function> is called
    Then the result "toolu_xyz" reads "[Tool result offloaded to file: {root}/session-abc123/toolu_xyz.md]"

    Examples:
      | function                  |
      | offload_tool_result       |
      | offload_tool_result_async |

  @F-003 @BR-3.2-11 @BR-3.2-22
  Scenario: The function returns a deep copy
    When the function offload_tool_result is called
    Then changed messages are deep copies
    And the input is not changed

  @F-001 @BR-3.2-4
  Scenario Outline: The function writes with the writer that the caller brings
    When the function <function> is called with
      | writer | <writer> |
    Then the file "session-abc123/toolu_xyz.md" is written by the writer
    And the result lists the file "session-abc123/toolu_xyz.md"

    Examples:
      | function                  | writer       |
      | offload_tool_result       | synchronous  |
      | offload_tool_result_async | synchronous  |
      | offload_tool_result_async | asynchronous |

  @UC-003 @BR-3.2-12
  Scenario Outline: The function raises an error when its file cannot be written
    When the disk is full
    And the function <function> is called
    Then it fails with a StoreError that says "No space left"

    Examples:
      | function                  |
      | offload_tool_result       |
      | offload_tool_result_async |

  @UC-003 @BR-3.2-4 @BR-3.2-12
  Scenario Outline: The error of a writer keeps the writer's own words and its cause
    When the function <function> is called with
      | writer | raising |
    Then it fails with a StoreError that says "cannot be written: the archive is sealed" because of a ConnectionError

    Examples:
      | function                  |
      | offload_tool_result       |
      | offload_tool_result_async |

  @F-003 @BR-3.2-7 @BR-3.2-19 @BR-3.2-22
  Scenario Outline: A message that was offloaded already is copied, and its file is the one it names
    Given the caller passes the edited messages back
    When the function <function> is called
    Then the result lists the file "session-abc123/toolu_xyz.md"
    When the function <function> is called
    Then the result lists the file "session-abc123/toolu_xyz.md"
    And the paths of the files are absolute
    And 0 characters are freed
    And changed messages are deep copies
    And the root folder holds only the file "session-abc123/toolu_xyz.md"

    Examples:
      | function                  |
      | offload_tool_result       |
      | offload_tool_result_async |

  @F-003 @BR-3.2-22
  Scenario Outline: A file that is gone is written again with what the message holds
    Given the caller passes the edited messages back
    When the function <function> is called
    Then the file "session-abc123/toolu_xyz.md" is written
    When the file "session-abc123/toolu_xyz.md" is deleted from the root folder
    And the function <function> is called
    Then the result lists the file "session-abc123/toolu_xyz.md"
    And the file "session-abc123/toolu_xyz.md" contains "[Tool result offloaded to file: "
    And the file "session-abc123/toolu_xyz.md" contains "session-abc123/toolu_xyz.md]"

    Examples:
      | function                  |
      | offload_tool_result       |
      | offload_tool_result_async |

  @F-001 @BR-3.2-1
  Scenario Outline: A message with two results is an error
    Given the messages
      """
      [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        {"type": "tool_result", "tool_use_id": "b", "content": "two"}]}]
      """
    When the function <function> is called
    Then it fails with a MessagesError that says "expected a message with one tool result, got 2"
    And no file is written

    Examples:
      | function                  |
      | offload_tool_result       |
      | offload_tool_result_async |
