Feature: What comes of it
  Each outcome where it holds; `failing.feature` has each where it does not.

  Background:
    Given the policy
      """
      min_chars: 100
      items:
        tool_result: {offload: true}
        web_page: {match: {type: tool_result, tool: "web_*"}, min_chars: 10}
      tools:
        todo: {pin: true}
      placeholder: "[{relative_path} of {chars}]"
      store: {path: "{session_id}/{tool_use_id}.md"}
      steps:
        - {name: leave, do: offload}
      """
    And the session "s-1"
    And a user message of 300 characters
    And a result "a" of 300 characters from Bash
    And a result "b" of 400 characters in blocks from Read
    And a result "small" of 99 characters from Bash
    And a result "page" of 50 characters from web_get
    And a result "list" of 500 characters from todo

  Scenario: What became of items
    When the policy is applied
    Then 3 results are offloaded
    And at least 2 results are offloaded
    And fewer than 4 results are newly offloaded by the step "leave"
    And only the results "a", "b" and "page" are offloaded
    And the result "a" is offloaded by the step "leave" by the rule "min_chars" because "300 >= 100 chars"
    And the result "small" is kept by the rule "min_chars" because "below_threshold"
    And the todo result is kept by the rule "tools.todo.pin" because "pinned"
    And the web page is offloaded by the rule "items.web_page.min_chars"
    And 1 web_get result is offloaded
    And at least 1 web page is offloaded
    And the first result is offloaded
    And the 2nd Bash result is kept
    And the last result is kept
    And no user message is offloaded
    And the user message is kept
    And every call is kept
    And every offloaded result is newly offloaded

  Scenario: Items by their positions
    When the policy is applied
    Then the first 2 results are offloaded
    And only the 1st, 2nd and 4th results are offloaded
    And the 2nd Bash result is kept
    And the 2nd newest result is offloaded
    And the 4th–5th calls are kept
    And the last 2 Bash results read like "*"
    And only 3 results are offloaded
    And messages 1, 6 and 7 are kept

  Scenario: What the model sees
    When the policy is applied
    Then the result "a" reads "[./s-1/a.md of 300]"
    And the result "a" reads "[{relative_path} of 300]"
    And the results "a" and "b" read like "[./s-1/*.md of *00]"
    And the result "b" reads as follows
      """
      [./{session_id}/b.md of 400]
      """
    And the content of the results "a" and "b" is a string
    And the content of the results "a" and "b" are a string

  Scenario: Objects
    When the policy is applied
    Then the input is not changed
    And the result "small" is the same object as before
    And messages 1 to 2 are the same objects as before
    And unchanged messages are the same objects
    And changed messages are deep copies

  Scenario: Files
    When the policy is applied
    Then 3 files are written
    And only the files "s-1/a.md", "s-1/b.md" and "s-1/page.md" are written
    And the file "s-1/a.md" is written
    And the file "{session_id}/a.md" holds the original content of the result "a"
    And the file of the result "b" holds its original content
    And the file of every offloaded item holds its original content
    And the file of the result "a" is "s-1/a.md"
    And the file of the result "a" is "{root}/{session_id}/*.md"
    And the paths of the files are absolute
    And the result lists the files "s-1/a.md", "s-1/b.md" and "s-1/page.md"
    And every file is below the root folder

  Scenario Outline: The folder that the policy itself names
    Given the policy
      """
      extends: tool-direct-offload
      store: {root: "<root>"}
      """
    And the policy's own root folder
    When a result "toolu_xyz" of 1500 characters arrives
    Then the file of the result "toolu_xyz" is "{root}/s-1/toolu_xyz.md"
    And the file of the result "toolu_xyz" is "*s-1/toolu_xyz.md"
    And the result "toolu_xyz" reads like "*/<found>/s-1/toolu_xyz.md]"
    And every file is below the root folder

    Examples:
      | root                      | found              |
      | .offload                  | .offload           |
      | ~/.agent/ctx/{session_id} | .agent/ctx/s-1     |

  Scenario: What is in a file
    Given a file "notes.md" that reads "old\n"
    And a file "data.json" that reads
      """
      {"schema_version": "1.0", "metadata": {"tool_name": "Read", "n": 3}}
      """
    When the policy is applied
    Then the file "notes.md" reads "old\n"
    And the file "data.json" reads as follows
      """
      {"schema_version": "1.0", "metadata": {"tool_name": "Read", "n": 3}}
      """
    And the file "data.json" is JSON with
      | schema_version     | 1.0  |
      | metadata.tool_name | Read |
      | metadata.n         | 3    |
      | metadata           | *    |
    And 3 files are written

  Scenario: What is reported
    When the policy is applied
    Then the result reports 3 offloaded items
    And the result reports the files "s-1/a.md", "s-1/b.md" and "{session_id}/page.md"
    And 750 characters are freed
    And more than 700 characters are freed
    And no warning is given
    And the context has under 700 tokens
    And the context has 11 messages
    When the policy is applied again
    Then the result reports no offloaded item
    And no characters are freed
    And 3 results are offloaded
    But nothing is newly offloaded
    And the prefix is unchanged up to message 4
    And the prefix is unchanged

  Scenario: Nothing to do
    Given the policy "tool-direct-offload"
    When the policy is applied
    Then the same list is returned
    And nothing is offloaded
    And every item is kept
    And no file is written
    And no folder is made
    And the result reports no offloaded item
    And no characters are freed

  Scenario: What a function returns
    Given the policy "context-offload"
    When the function offload_tool_results is called
    Then the result reports 3 offloaded items
    And 1,227 characters are freed
    And the result lists the files "tool-result-a.md", "tool-result-b.md" and "tool-result-list.md"
    And only the results "a", "b" and "list" are offloaded
    And the result "a" reads "[Content offloaded to: ./tool-result-a.md]"
    And the result "small" is the same object as before
    And the context has 11 messages
    And the input is not changed
    When the policy is applied
    Then 3 results are newly offloaded

  Scenario Outline: <what> is offloaded in the <shape> shape
    Given the policy
      """
      items: {image: {offload: true}, document: {offload: true}}
      placeholder: "[{item_type}]"
      steps: [{name: leave, do: <do>, select: {types: [image, document]}}]
      """
    And the messages have the <shape> shape
    And the messages
      | role | type   |
      | user | <what> |
      | and  | text   |
    When the policy is applied
    Then 1 <what> is <state>
    And every <what> is <state>
    And every <what> reads "<reads>"

    Examples:
      | what     | shape            | do      | state     | reads      |
      | image    | Anthropic        | offload | offloaded | [image]    |
      | image    | OpenAI           | offload | offloaded | [image]    |
      | image    | OpenAI Responses | offload | offloaded | [image]    |
      | document | Anthropic        | offload | offloaded | [document] |
      | document | OpenAI           | offload | offloaded | [document] |
      | document | OpenAI Responses | offload | offloaded | [document] |
      | image    | Anthropic        | clear   | cleared   | [image]    |
      | document | OpenAI           | clear   | cleared   | [document] |

  Scenario: What stays behind dropped items is found in its new place
    Given the policy
      """
      items: {image: {offload: true}, tool_result: {offload: true}, user_message: {offload: true}}
      placeholder: "[{item_type}]"
      steps:
        - {name: shed, do: drop, select: {types: [image]}}
        - {name: leave, do: offload, select: {types: [tool_result, user_message]}}
      """
    And the messages
      | role      | type     | size           | id | tool |
      | user      | image    |                |    |      |
      | and       | text     | 600 characters |    |      |
      | assistant | call     |                | z  | Bash |
      | user      | result   | 600 characters | z  |      |
      | user      | image    |                |    |      |
      | and       | text     | 600 characters |    |      |
      | user      | text     | 10 characters  |    |      |
    When the policy is applied
    Then 2 images are dropped
    And 3 user messages are offloaded
    And every offloaded user message reads "[user_message]"
    And the result "z" is offloaded
    And the call "z" is kept

  Scenario: What is one in number
    Given the policy
      """
      items: {tool_result: {offload: true}}
      store: {path: "{tool_use_id}.md"}
      placeholder: "[{relative_path}]"
      steps: [{name: leave, do: offload, select: {types: [tool_result]}, must_shrink: false}]
      """
    And no messages
    And a result "one" of 1 character
    When the policy is applied
    Then 1 character is freed
    And the result reports 1 offloaded item
    And the result reports the file "one.md"
    And the result lists the file "one.md"
    And the file "one.md" is written

  Scenario: An error with a vowel at its beginning
    When the function offload_tool_results is called with
      | folder | elsewhere |
    Then it fails with an UnknownOptionError that says "folder"
