Feature: Outcomes that did not come
  Every scenario fails at its last step, and its failure says what the scenario is called.

  Background:
    Given the policy
      """
      min_chars: 100
      items:
        tool_result: {offload: true}
      placeholder: "[{relative_path}]"
      store: {path: "{tool_use_id}.md"}
      steps:
        - {name: leave, do: offload}
      """
    And a user message of 300 characters
    And a result "a" of 300 characters from Bash
    And a result "b" of 200 characters in blocks from Read
    And a result "small" of 99 characters from Bash

  Scenario: found:    2
    When the policy is applied
    Then 3 results are offloaded

  Scenario: expected: at least 3 results are newly offloaded
    When the policy is applied
    Then at least 3 results are newly offloaded

  Scenario: expected: nothing is offloaded
    When the policy is applied
    Then nothing is offloaded

  Scenario: expected: the result "small" is offloaded
    When the policy is applied
    Then the result "small" is offloaded

  Scenario: tool result "small" of Bash, message 7, 99 characters: kept, below_threshold: 99 < 100 chars · step leave · min_chars
    When the policy is applied
    Then every result is offloaded

  Scenario: expected: every web_get result
    When the policy is applied
    Then every web_get result is offloaded

  Scenario: found:    1 other as well
    When the policy is applied
    Then only the result "a" is offloaded

  Scenario: found:    no such item in the context
    When the policy is applied
    Then the result "nobody" is kept

  Scenario: Say which one, such as `the 2nd Bash result`.
    When the policy is applied
    Then the Bash result is offloaded

  Scenario: found:    only 2 of them
    When the policy is applied
    Then the 3rd Bash result is offloaded

  Scenario: found:    only 4 of them
    Given a result "c" of 300 characters from Bash
    When the policy is applied
    Then the 2nd to 5th results are offloaded

  Scenario: found:    no tool 'Bsh' in the context; did you mean 'Bash'? It has Bash, Read
    When the policy is applied
    Then no Bsh result is kept

  Scenario: 'every 2nd result': write `the` or `only the` before a position
    When the policy is applied
    Then every 2nd result is offloaded

  Scenario: a failed result has no word here: name it by its id
    Given a failed result "c" of 300 characters from Bash
    When the policy is applied
    Then the results that failed are kept

  Scenario: no tool 'failing' in the context; It has Bash, Read; a failed result has no word here
    Given a failed result "c" of 300 characters from Bash
    When the policy is applied
    Then the failing results are kept

  Scenario: not compacted, after 3 attempts: no summary: overloaded
    Given the policy
      """
      model: {context_window: 100}
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer fails every time saying "overloaded"
    When the policy is applied
    Then the summarizer is asked 1 time

  Scenario: no items are called 'Bsh thing'
    When the policy is applied
    Then the Bsh thing is offloaded

  Scenario: expected: the result "a" is offloaded by the step retire
    When the policy is applied
    Then the result "a" is offloaded by the step "retire"

  Scenario: expected: the result "a" is offloaded by the rule min_tokens
    When the policy is applied
    Then the result "a" is offloaded by the rule "min_tokens"

  Scenario: expected: the result "small" is kept because pinned
    When the policy is applied
    Then the result "small" is kept because "pinned"

  Scenario: expected: the result "a" is newly offloaded
    When the policy is applied
    And the policy is applied again
    Then the result "a" is newly offloaded

  Scenario: expected: [./b.md]
    When the policy is applied
    Then the result "a" reads "[./b.md]"

  Scenario: expected: *.json]
    When the policy is applied
    Then the result "a" reads like "*.json]"

  Scenario: expected: line one
    When the policy is applied
    Then the result "a" reads as follows
      """
      line one
      line two
      """

  Scenario: found:    none: it was not offloaded
    When the policy is applied
    Then the result "small" reads "{path}"

  Scenario: expected: a list of blocks
    When the policy is applied
    Then the content of the result "b" is a list of blocks

  Scenario: expected: the list that was given
    When the policy is applied
    Then the same list is returned

  Scenario: expected: message 3 to be the object given
    When the policy is applied
    Then the result "a" is the same object as before

  Scenario: expected: a breakpoint before a
    When the policy is applied
    Then a cache breakpoint stands right before the result "a"

  Scenario: expected: a changed message
    Given the policy "tool-direct-offload"
    When the policy is applied
    Then changed messages are deep copies

  Scenario: "role": "user"
    When the policy is applied
    Then the messages are
      """
      []
      """

  Scenario: expected: under 10 tokens
    When the policy is applied
    Then the context has under 10 tokens

  Scenario: expected: 8 messages
    When the policy is applied
    Then the context has 8 messages

  Scenario: expected: at least 5,000 characters
    When the policy is applied
    Then the context has at least 5,000 characters

  Scenario: expected: two model calls to compare
    When the policy is applied
    Then the prefix is unchanged

  Scenario: expected: message 7
    Given the policy
      """
      items: {tool_result: {offload: true, keep_recent: 2}}
      placeholder: "[{relative_path}]"
      steps: [{name: retire, do: offload}]
      """
    And a result of 200 characters from Bash
    When the policy is applied
    And a result of 200 characters arrives from Bash
    And the policy is applied
    Then the prefix is unchanged

  Scenario: expected: 3 written
    When the policy is applied
    Then 3 files are written

  Scenario: found:    6: .policyctx/session/index.json
    When the policy is applied
    Then no file is written

  Scenario: expected: no root folder
    When the policy is applied
    Then no folder is made

  Scenario: expected: a.md, c.md
    When the policy is applied
    Then the files "a.md" and "c.md" are written

  Scenario: found:    a.md, b.md
    When the policy is applied
    Then only the file "a.md" is written

  Scenario: expected: 'other'
    When the policy is applied
    Then the file "a.md" reads "other"

  Scenario: expected: 'what it has not'
    When the policy is applied
    Then the file "a.md" contains "what it has not"

  Scenario: expected: the file c.md
    When the policy is applied
    Then the file "c.md" reads "other"

  Scenario: expected: metadata.n: 4
    Given a file "data.json" that reads "{\"metadata\": {\"n\": 3}}"
    When the policy is applied
    Then the file "data.json" is JSON with
      | metadata.n | 4 |

  Scenario: tool result "b" of Read, message 5
    When the policy is applied
    Then the file "a.md" holds the original content of the result "b"

  Scenario: expected: a file
    When the policy is applied
    Then the file of the result "small" holds its original content

  Scenario: expected: tool_result/a.md
    When the policy is applied
    Then the file of the result "a" is "tool_result/a.md"

  Scenario: found:    .policyctx/
    When the policy is applied
    Then the root folder holds only the files "a.md" and "b.md"

  Scenario: /a.md
    When the policy is applied
    Then the result lists the files "b.md" and "a.md"

  Scenario: expected: files
    Given the policy "tool-direct-offload"
    When the policy is applied
    Then the paths of the files are absolute

  Scenario: expected: files below
    Given the policy "tool-direct-offload"
    When the policy is applied
    Then every file is below the root folder

  Scenario: expected: 501 characters
    When the policy is applied
    Then 501 characters are freed

  Scenario: expected: 502 characters
    When the policy is applied
    Then 502 characters are freed net of placeholders

  Scenario: expected: 1 items
    When the policy is applied
    Then the result reports 1 offloaded item

  Scenario: expected: b.md, a.md
    When the policy is applied
    Then the result reports the files "b.md" and "a.md"

  Scenario: expected: 1 warnings
    When the policy is applied
    Then 1 warning is given

  Scenario: expected: a warning with 'disk'
    When the policy is applied
    Then a warning says "disk"

  Scenario: expected: StoreError
    When the policy is applied
    Then it fails with a StoreError

  Scenario: expected: PolicyError
    Given the policy "context-offload"
    When the disk is full
    And the policy is applied
    Then it fails with a PolicyError

  Scenario: expected: StoreError with 'Permission denied'
    Given the policy "context-offload"
    When the disk is full
    And the policy is applied
    Then it fails with a StoreError that says "Permission denied"

  Scenario: found:    StoreError
    Given the policy "context-offload"
    When the disk is full
    And the policy is applied
    Then no file is written

  Scenario: StoreError:
    Given the policy "context-offload"
    When the disk is full
    And the policy is applied
    Then the input is not changed

  Scenario: found:    no gate was asked
    When the policy is applied
    Then the gate "ratio" of the step "leave" opens

  Scenario: nothing has happened yet; a When comes before a Then
    Given no messages
    Then nothing is offloaded

  Scenario: nothing has happened yet
    Given no messages
    Then no archive is written

  Scenario: a When comes before a Then
    Given no messages
    Then no file is written

  Scenario: nothing has happened yet; a When
    Given no messages
    Then no folder is made

  Scenario: happened yet; a When comes before a Then
    Given no messages
    Then the input is not changed

  Scenario: no such policy: it is neither a file nor a preset; did you mean 'coding-agent'?
    When the policy is applied
    Then nothing is dropped
    Given the policy "coding-agnt"

  Scenario: 'nothing' is no type
    When the policy is applied
    Then nothing is dropped
    Given the messages
      | type    |
      | nothing |

  Scenario: no column is called 'sise'
    When the policy is applied
    Then nothing is dropped
    Given the messages
      | type   | sise         |
      | result | 3 characters |

  Scenario: '3 chars' is no size
    When the policy is applied
    Then nothing is dropped
    Given the messages
      | type   | size    |
      | result | 3 chars |

  Scenario: the JSON of a text block has 27 characters or more
    Given the policy "context-offload"
    When the policy is applied
    Then nothing is dropped
    Given a result of 26 characters in blocks

  Scenario: 3 results cannot have one id
    When the policy is applied
    Then nothing is dropped
    Given 3 results "a" of 26 characters

  Scenario: only a result has a tool
    When the policy is applied
    Then nothing is dropped
    Given a user message of 3 characters from Bash

  Scenario: say `of 300 characters`
    When the policy is applied
    Then nothing is dropped
    Given a result from Bash

  Scenario: not JSON: line 1, column 1
    When the policy is applied
    Then nothing is dropped
    Given the messages
      """
      hello
      """

  Scenario: no file 'nowhere.jsonl' in
    When the policy is applied
    Then nothing is dropped
    Given the recording "nowhere.jsonl"

  Scenario: the ages go down from row to row
    When the policy is applied
    Then nothing is dropped
    Given the messages
      | type   | text | age |
      | result | x    | 0   |
      | result | x    | 2   |

  Scenario: what arrives is no list
    When a result of 3 characters arrives
    Then the same list is returned

  Scenario: expected: s-[0-9]
    When the policy is applied
    Then the session's id matches "s-[0-9]"

  Scenario: expected: a time from
    Given the session "session_20240115_103045_abcdef"
    When the policy is applied
    Then the session's id has the time to the second

  Scenario: expected: listed as offloaded
    When the policy is applied
    Then the result "small" is listed as offloaded

  Scenario: expected: listed as destroyed
    When the policy is applied
    Then the result "small" is listed as destroyed

  Scenario: expected: listed as kept
    When the policy is applied
    Then the result "a" is listed as kept

  Scenario: a.md no longer holds what was saved
    When the policy is applied
    Given a file "a.md" that reads "changed"
    Then the result "a" can be read back

  Scenario: b.md no longer holds what was saved
    When the policy is applied
    Given a file "b.md" that reads "changed"
    Then the result "b" can be restored

  Scenario: found:    saved
    When the policy is applied
    Then the history tells that the result "a" was removed

  Scenario: found:    it is there
    When the policy is applied
    Then the file "a.md" is gone

  Scenario: expected: small.md saved once
    When the policy is applied
    Then the file "small.md" is gone

  Scenario: what begins with a text is no block
    When the policy is applied
    Then nothing is dropped
    Given a user message of 3 tokens that begins with "x"

  Scenario: the text that it begins with is longer
    When the policy is applied
    Then nothing is dropped
    Given a user message of 3 characters that begins with "four"

  Scenario: the history to be compacted
    Given the policy "context-compact"
    And a user message of 10 tokens
    When the policy is applied
    Then the history is compacted

  Scenario: 2 times
    Given the policy
      """
      model: {context_window: 100}
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then the summarizer is asked 2 times

  Scenario: 'make it rhyme'
    Given the policy
      """
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then the summarizer is told "make it rhyme"

  Scenario: 'make it short'
    Given the policy
      """
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then the summarizer receives "make it short"

  Scenario: 'what nobody said'
    Given the policy
      """
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then the summarizer sees "what nobody said"

  Scenario: 'a.py' is not restored: there is no such file
    Given the policy
      """
      tools: {read_file: {reads_file: path}}
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And the agent has read the file "a.py"
    When the policy is applied
    Then the file "a.py" is restored

  Scenario: b.py
    Given the policy
      """
      tools: {read_file: {reads_file: path}}
      steps: [{name: summarise, do: compact}]
      """
    And the working directory has the file "b.py" that reads "b"
    And the summarizer answers "Short."
    And the agent has read the file "b.py"
    When the policy is applied
    Then no file is restored

  Scenario: expected: Never push to main.
    Given the policy "claude-code"
    When the host compacts to "Done."
    Then only "Never push to main." is carried

  Scenario: expected: Never push to main, Never delete a tag.
    Given the policy "claude-code"
    And the messages
      """
      [{"role": "user", "content": "Never delete a tag."}]
      """
    When the host compacts to "Done."
    Then "Never push to main" and "Never delete a tag." are carried

  Scenario: found:    The port is 8081.
    Given the policy "claude-code"
    And the messages
      """
      [{"role": "user", "content": "The port is 8081."}]
      """
    When the host compacts to "Done."
    Then nothing is carried

  Scenario: expected: sent again
    When the policy is applied
    And the provider refuses the prompt as too long
    Then the request is sent again

  Scenario: found:    sent again
    Given the policy
      """
      steps: [{name: last, on: overflow, do: compact}]
      """
    And a user message of 300 characters
    When the policy is applied
    And the provider refuses the prompt as too long
    Then the request is not sent again

  Scenario: compacted_message_count: 8
    Given the policy
      """
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then the compaction reports
      | compacted_message_count | 2 |

  Scenario: the second
    Given the policy
      """
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And the messages
      | role      | text       |
      | user      | the first  |
      | assistant | the second |
    When the policy is applied
    Then the archive holds message 1

  Scenario: no archive
    Given the policy
      """
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then no archive is written

  Scenario: user, user
    Given the policy "context-compact"
    And 2 user messages of 10 tokens
    When the policy is applied
    Then user and assistant take turns

  Scenario: extractive claude
    Given the policy
      """
      compaction: {summary: {model: claude}}
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    When the policy is applied
    Then the summary is asked of anthropic

  Scenario: 60 and 30 seconds
    Given the policy
      """
      compaction: {summary: {timeout: 60s, total_timeout: 31s}}
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then a try may take 60 seconds, and all tries 30 seconds

  Scenario: 2 waits that grow from 1 seconds
    Given the policy
      """
      compaction: {summary: {backoff: 0s, attempts: 3}}
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer fails 2 times
    And a user message of 10 tokens
    When the policy is applied
    Then the waits between the tries grow from 1 second

  Scenario: no public function is called 'offload'
    When the policy is applied
    Then nothing is dropped
    When the function offload is called

  Scenario: no writer is 'odd'; there are synchronous, asynchronous
    When the policy is applied
    Then nothing is dropped
    When the function offload_tool_results is called with
      | writer | odd |

  Scenario: expected: 800 characters
    When the function offload_tool_results is called
    Then 800 characters are freed

  Scenario: expected: 3 items
    When the function offload_tool_results is called
    Then the result reports 3 offloaded items

  Scenario: OffloadResults has no `compacted`
    When the function offload_tool_results is called
    Then the history is compacted

  Scenario: a function has no plan that counts tokens
    When the function offload_tool_results is called
    Then the context has 1 tokens

  Scenario: a function returned OffloadResults, and no plan
    When the function offload_tool_results is called
    Then no file is restored

  Scenario: expected: metadata.n: over 3
    Given a file "data.json" that reads "{\"metadata\": {\"n\": 3}}"
    When the policy is applied
    Then the file "data.json" is JSON with
      | metadata.n | over 3 |

  Scenario: metadata.n: 4
    Given a file "data.json" that reads "{\"metadata\": {\"n\": \"4\"}}"
    When the policy is applied
    Then the file "data.json" is JSON with
      | metadata.n | over 3 |

  Scenario: found:    no file
    When the function offload_tool_results is called
    Then the file "tool-result-a.md" is written by the writer

  Scenario: expected: the result "a" is cleared
    When the policy is applied
    Then the result "a" is cleared

  Scenario: expected: the result "a" is dropped
    When the policy is applied
    Then the result "a" is dropped

  Scenario: expected: the result "a" is summarised
    When the policy is applied
    Then the result "a" is summarised

  Scenario: expected: [./c.md]
    When the policy is applied
    Then the results "a" and "b" read "[./c.md]"

  Scenario: expected: a string
    Given a result "c" of 60 characters in blocks
    When the policy is applied
    Then the content of the results "a" and "c" are a string

  Scenario: expected: message 5 to be the object given
    When the policy is applied
    Then the results "b" and "small" are the same objects as before

  Scenario: expected: message 7 {
    Given the policy
      """
      items: {tool_result: {offload: true, keep_recent: 2}}
      placeholder: "[{relative_path}]"
      steps: [{name: retire, do: offload}]
      """
    And a result of 200 characters from Bash
    When the policy is applied
    And a result of 200 characters arrives from Bash
    And the policy is applied
    Then the prefix is unchanged up to message 7

  Scenario: expected: no file a.md
    When the policy is applied
    Then the files "a.md" and "b.md" are gone

  Scenario: expected: b.md
    When the policy is applied
    Then the root folder holds only the file "b.md"

  Scenario: /b.md
    When the policy is applied
    Then the result lists the file "b.md"

  Scenario: expected: 'another'
    When the policy is applied
    Then the file "a.md" reads as follows
      """
      another
      """

  Scenario: offloaded=True
    When the policy is applied
    Then the results "small" and "a" are listed as kept

  Scenario: expected: removed
    When the policy is applied
    Then the history tells that the results "a" and "b" were removed

  Scenario: expected: packed
    When the policy is applied
    Then the history tells that the result "a" was packed

  Scenario: expected: saved
    Given the policy
      """
      items: {tool_result: {offload: true}}
      placeholder: "[{relative_path}]"
      store: {path: "{tool_use_id}.md", state: none}
      steps: [{name: leave, do: offload}]
      """
    When the policy is applied
    Then the history tells that the result "a" was saved

  Scenario: expected: 1 characters
    When the policy is applied
    Then 1 character is freed

  Scenario: expected: c.md
    When the policy is applied
    Then the result reports the file "c.md"

  Scenario: expected: 2 warnings
    When the policy is applied
    Then 2 warnings are given

  Scenario: expected: UnknownOptionError
    When the policy is applied
    Then it fails with an UnknownOptionError

  Scenario: expected: the gate tokens of the step leave stays closed because under 5
    Given the policy
      """
      items: {tool_result: {offload: true}}
      steps: [{name: leave, do: offload, when: {tokens: {over: 5}}}]
      """
    When the policy is applied
    Then the gate "tokens" of the step "leave" stays closed because "under 5"

  Scenario: expected: the history to be not compacted
    Given the policy
      """
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then the history is not compacted

  Scenario: expected: 1 times
    Given the policy "context-compact"
    And the summarizer answers "Short."
    When the policy is applied
    Then the summarizer is asked 1 time

  Scenario: expected: extractive other
    Given the policy
      """
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then the summary is asked of extractive with the model other

  Scenario: expected: 1 and 1 seconds
    Given the policy
      """
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then a try may take 1 second, and all tries 1 second

  Scenario: expected: no 'what was said'
    Given the policy
      """
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    And the messages
      | role | text          |
      | user | what was said |
    When the policy is applied
    Then the summarizer does not see "what was said"

  Scenario: expected: a.py, b.py
    Given the policy
      """
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then the files "a.py" and "b.py" are restored

  Scenario: 2 waits that grow from 5 seconds
    Given the policy
      """
      compaction: {summary: {backoff: 1s, attempts: 3}}
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer fails 2 times
    And a user message of 10 tokens
    When the policy is applied
    Then the waits between the tries grow from 5 seconds

  Scenario: expected: metadata.m: *
    Given a file "data.json" that reads "{\"metadata\": {\"n\": 3}}"
    When the policy is applied
    Then the file "data.json" is JSON with
      | metadata.m | * |

  Scenario: expected: metadata.n.m: null
    Given a file "data.json" that reads "{\"metadata\": {\"n\": 3}}"
    When the policy is applied
    Then the file "data.json" is JSON with
      | metadata.n.m | null |

  Scenario: found:    dict
    When the policy is applied
    Then the content of the 1st call is a list of blocks

  Scenario: expected: no archive
    Given the policy
      """
      compaction: {archive: true}
      store: {format: envelope}
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 10 tokens
    When the policy is applied
    Then no archive is written

  Scenario: user, user, assistant, tool
    Given the policy "context-compact"
    And the messages have the OpenAI Responses shape
    And 2 user messages of 10 tokens
    And a Bash result of 10 tokens
    When the policy is applied
    Then user and assistant take turns

  Scenario: expected: 'Long.'
    Given the policy "context-compact"
    And the summarizer answers "Short."
    And a user message of 160,000 tokens
    When the function compact_messages is called
    Then the compaction reports the summary "Long."

  Scenario: message 1, 300 characters: summarised
    Given the summarizer answers "Short."
    When the function compact_messages is called with
      | threshold | 1 |
    Then message 1 is kept

  Scenario: expected: context for its owner
    Given the policy
      """
      extends: context-offload
      store: {mode: "0640"}
      """
    When the policy is applied
    Then only their owner may read the files

  Scenario: expected: key: sk-1
    Given the policy
      """
      redact: {key: {pattern: 'sk-[0-9]+', keep: true}}
      """
    And a user message that reads "take sk-2"
    When the policy is applied
    Then the original of "key" is kept as "sk-1"

  Scenario: warning:  not compacted, after 3 attempts
    Given the policy "context-compact"
    And the summarizer fails 3 times
    And a user message of 170,000 tokens
    When the policy is applied
    Then message 1 is summarised

  Scenario: no model was called yet; write `When the policy is applied` before it
    When a result of 300 characters arrives from Bash
    Then nothing is dropped
    When the provider counts 500 tokens
