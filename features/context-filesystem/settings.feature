Feature: The settings
  What the document's configuration says is said in the policy's own keys.

  @BR-3.1-1
  Scenario: Offloading is on without being asked for
    Given the policy "context-filesystem"
    And the tool Read is ephemeral and keeps 1 result
    And a session with 2 Read results of 300 tokens
    When the policy is applied
    Then 1 result is offloaded

  @BR-3.1-1 @BR-4.1-5
  Scenario: Offloading can be switched off
    Given the policy
      """
      extends: context-filesystem
      steps:
        - name: retire
          do: clear
          select: {ephemeral: true, min_tokens: 0}
          placeholder: "[Old result removed]"
        - {name: make-room, remove: true}
      """
    And the tool Read is ephemeral and keeps 1 result
    And a session with 2 Read results of 300 tokens
    When the policy is applied
    Then the first result reads as follows
      """
      [Old result removed]
      """
    And the first result is listed as destroyed
    And under 1 file is written

  @BR-3.1-2
  Scenario Outline: The threshold is 2,000 tokens, or another one
    Given the policy
      """
      extends: context-filesystem
      steps:
        - name: make-room
          do: drop
          when: {tokens: {at_least: 80%}}
          select: {types: [tool_result], min_tokens: <threshold>}
      """
    And the request's system prompt has 155,000 tokens
    And a session with a Bash result of 1,500 tokens
    And a Bash result of 6,000 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then the first result is <state>

    Examples:
      | threshold | state   |
      | 1000      | dropped |
      | 2000      | kept    |

  @BR-3.1-3 @BR-3.3-1
  Scenario: Without a folder of the caller's, the session has one of its own at home
    Given the policy "context-filesystem"
    And the session "s-1"
    And the tool Read is ephemeral and keeps 0 results
    And the policy's own root folder
    And a session with a result "a" of 300 tokens from Read
    When the policy is applied
    Then the result "a" reads like "*/.agent/context/s-1/tool_result/Read/a.json*"
    And the file "index.json" is JSON with
      | schema_version | * |

  @BR-3.1-3
  Scenario: A folder of the caller's takes its place whole
    Given the policy "context-filesystem"
    And the tool Read is ephemeral and keeps 0 results
    And the root folder "elsewhere"
    And a session with a result "a" of 300 tokens from Read
    When the policy is applied
    Then the file of the result "a" is "{root}/tool_result/Read/a.json"
    And every file is below the root folder
    And the file "index.json" is JSON with
      | items | [{"path":"tool_result/Read/a.json",*"item_id":"a",*}] |

  @BR-3.1-4
  Scenario: One number may override what every tool says of itself
    Given the policy
      """
      extends: context-filesystem
      steps:
        - name: retire
          do: offload
          select: {ephemeral: true, min_tokens: 0, keep_recent: 1}
      """
    And the tool Read is ephemeral and keeps 5 results
    And the tool search is ephemeral and keeps 3 results
    And a session with 3 Read results of 300 tokens
    And 3 search results of 300 tokens
    And 3 Bash results of 300 tokens
    When the policy is applied
    Then 2 Read results are offloaded
    And 2 search results are offloaded
    And every Bash result is kept

  @BR-3.1-4
  Scenario: Without it each tool's own number holds
    Given the policy "context-filesystem"
    And the tool Read is ephemeral and keeps 5 results
    And the tool search is ephemeral and keeps 3 results
    And a session with 3 Read results of 300 tokens
    And 4 search results of 300 tokens
    When the policy is applied
    Then 1 search result is offloaded
    And every Read result is kept

  @BR-6.4-1 @BR-6.4-2 @BR-6.4-3
  Scenario: A session without an id names itself by the time and six random characters
    Given the policy "context-filesystem"
    And the session has no id yet
    And the policy's own root folder
    And the tool Read is ephemeral and keeps 0 results
    And a session with a result "a" of 300 tokens from Read
    When the policy is applied
    Then the session's id matches "session_20[0-9]{2}[01][0-9][0-3][0-9]_[0-2][0-9][0-5][0-9][0-5][0-9]_(?!(.)\\1{5})[a-z0-9]{6}"
    And the session's id has the time to the second
    And the result "a" reads like "*/.agent/context/{session_id}/tool_result/Read/a.json*"

  @BR-3.1-1 @BR-4.1-4 @BR-4.1-5
  Scenario Outline: With offloading off, what is no longer recent is destroyed and not saved
    Given the policy "context-filesystem"
    And the options
      | offload_enabled | false |
    And the tool Read is ephemeral and keeps <kept> results
    And a session with <count> <which> results of 300 tokens
    When the policy is applied
    Then <gone> results are cleared by the step "retire"
    And the first result is listed as destroyed
    And no result is offloaded
    And the last result is kept
    And under 1 file is written
    When the process restarts
    And the policy is applied again
    Then <gone> results are cleared

    Examples:
      | kept | count | which         | gone |
      | 1    | 2     | Read          | 1    |
      | 2    | 5     | Read          | 3    |
      | 2    | 5     | parallel Read | 3    |

  @BR-3.1-1 @BR-4.1-6
  Scenario: What is destroyed with offloading off names no file
    Given the policy "context-filesystem"
    And the options
      | offload_enabled | false |
    And the tool Read is ephemeral and keeps 1 result
    And a session with a result "old" of 300 tokens from Read
    And a result "new" of 300 tokens from Read
    When the policy is applied
    Then the result "old" reads as follows
      """
      [Old tool result cleared; make the call again if you need it]
      """
    And the input is not changed

  @BR-3.1-1 @BR-4.2-4 @BR-4.2-7
  Scenario: With offloading off no room is made, and the summary follows
    Given the policy "context-filesystem"
    And the options
      | offload_enabled | false |
    And the summarizer answers "Ten results were read."
    And a session with 10 Bash results of 17,000 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then the history is compacted
    And no result is dropped

  @BR-3.1-2
  Scenario Outline: The agent's option gives the threshold
    Given the policy "context-filesystem"
    And the options
      | offload_token_threshold | <threshold> |
    And the request's system prompt has 155,000 tokens
    And a session with a Bash result of 1,500 tokens
    And a Bash result of 6,000 tokens
    And a user message that reads "go on"
    When the policy is applied
    Then the first result is <state>

    Examples:
      | threshold | state   |
      | 1000      | dropped |
      | 2000      | kept    |

  @BR-3.1-3
  Scenario: The agent's option names the folder
    Given the policy "context-filesystem"
    And the options
      | offload_root_path | ./contexts/{session_id} |
    And the session "s-1"
    And the tool Read is ephemeral and keeps 0 results
    And the policy's own root folder
    And a session with a result "a" of 300 tokens from Read
    When the policy is applied
    Then the result "a" reads like "*/contexts/s-1/tool_result/Read/a.json*"

  @BR-3.1-4 @BR-6.1-1
  Scenario: The agent's option overrides what every tool says of itself
    Given the policy "context-filesystem"
    And the options
      | ephemeral_keep_recent | 1 |
    And the tool Read is ephemeral and keeps 5 results
    And the tool search is ephemeral and keeps 3 results
    And a session with 3 Read results of 300 tokens
    And 3 search results of 300 tokens
    And 3 Bash results of 300 tokens
    When the policy is applied
    Then 2 Read results are offloaded
    And 2 search results are offloaded
    And the first Read result is offloaded because "3rd newest of Read, 1 kept"
    And every Bash result is kept

  @BR-3.1-4
  Scenario: The agent's option counts results of parallel calls one by one
    Given the policy "context-filesystem"
    And the options
      | ephemeral_keep_recent | 2 |
    And the tool Read is ephemeral and keeps 9 results
    And a session with 5 parallel Read results of 300 tokens
    When the policy is applied
    Then 3 results are offloaded

  @BR-3.1-4
  Scenario Outline: A policy that overrides the number may keep parallel calls together
    Given the policy
      """
      extends: context-filesystem
      steps:
        - name: retire
          do: offload
          select: {ephemeral: true, min_tokens: 0, keep_recent: <kept>}
      """
    And the tool Read is ephemeral and keeps 9 results
    And a session with 5 parallel Read results of 300 tokens
    When the policy is applied
    Then <retired> results are offloaded

    Examples:
      | kept                        | retired |
      | 2                           | 3       |
      | {items: 2}                  | 3       |
      | {items: 2, batches: whole}  | no      |
