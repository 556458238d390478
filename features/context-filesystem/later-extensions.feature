Feature: What the document leaves for later
  Files that expire, compression, an excerpt in the placeholder, history and recovery.

  @BR-9-1
  Scenario: What is old and no placeholder names any more is removed
    Given the policy
      """
      extends: context-filesystem
      store: {retention: {max_age: 30d}}
      """
    And the request's system prompt has 160,000 tokens
    And a session with a result "old" of 3,000 tokens from Bash
    And a user message that reads "go on"
    When the policy is applied
    Then the result "old" is dropped
    When 31 days pass
    And the store is collected
    Then the file "tool_result/Bash/old.json" is gone
    And the history tells that the result "old" was removed

  @BR-9-1
  Scenario: What a placeholder names never expires
    Given the policy
      """
      extends: context-filesystem
      store: {retention: {max_age: 30d}}
      """
    And the tool Read is ephemeral and keeps 0 results
    And a session with a result "old" of 3,000 tokens from Read
    When the policy is applied
    And 300 days pass
    And the store is collected
    Then the file of the result "old" holds its original content

  @BR-9-1
  Scenario: The oldest of what no placeholder names goes until the rest is small enough
    Given the policy
      """
      extends: context-filesystem
      store: {retention: {max_bytes: 25KB}}
      """
    And the request's system prompt has 160,000 tokens
    And a session with a result "older" of 20,000 characters from Bash
    And a result "newer" of 20,000 characters from Bash
    And a user message that reads "go on"
    When the policy is applied
    Then the results "older" and "newer" are dropped
    When 2 hours pass
    And the store is collected
    Then the history tells that the result "older" was removed
    And the result "newer" can be read back

  @BR-9-2
  Scenario: What no placeholder names is compressed, and still reads as it was
    Given the policy "context-filesystem"
    And the request's system prompt has 160,000 tokens
    And a session with a result "old" of 3,000 tokens from Bash
    And a user message that reads "go on"
    When the policy is applied
    And 2 hours pass
    And the store is collected
    Then the file "tool_result/Bash/old.json" is gone
    And the file "tool_result/Bash/old.json.zst" is written
    And the result "old" can be read back
    And the history tells that the result "old" was packed

  @BR-9-3
  Scenario: A placeholder may show the beginning and the end of what left
    Given the policy
      """
      extends: context-filesystem
      placeholder:
        text: |-
          [Content offloaded]
          Path: {path}
          {head}
          … {omitted_lines} lines …
          {tail}
        head: {lines: 1}
        tail: {lines: 1}
        max_line_chars: 200
      """
    And the tool Read is ephemeral and keeps 0 results
    And a result "a" of 9000 characters that begins with "the first line\n" from Read
    When the policy is applied
    Then the result "a" reads like "[Content offloaded]*Path: *a.json*the first line*lines …*"

  @BR-9-4
  Scenario: The history tells what was offloaded, and each can be put back as it was
    Given the policy "context-filesystem"
    And the tool Read is ephemeral and keeps 0 results
    And a session with a result "a" of 300 tokens from Read
    And a result "b" of 3,000 characters in blocks from Read
    When the policy is applied
    Then the history tells that every offloaded item was saved
    And every offloaded item can be read back
    And every offloaded item can be restored

  @BR-9-4
  Scenario: What was dropped from the list can be put back too
    Given the policy "context-filesystem"
    And the request's system prompt has 160,000 tokens
    And a session with a result "a" of 3,000 tokens from Bash
    And a user message of 3,000 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then the result "a" is dropped
    And every dropped item can be restored
    And every dropped item can be read back
