Feature: What happens around compactions
  What the summarizer says and what is on the disk may change between two turns.

  Background:
    Given the policy
      """
      tools: {read_file: {reads_file: path}, Read: {reads_file: file_path}}
      compaction: {summary: {attempts: 3, backoff: 2s, timeout: 1s, total_timeout: 60s}}
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "Short."
    And a user message of 300 tokens

  Scenario: Who answers, and what, may change
    When the summarizer answers
      """
      The first summary.
      """
    And the policy is applied
    Then the history is compacted
    And the summary is asked of extractive
    When the model answers "ok"
    And the session continues for 1 turn
    Then the history is not compacted

  Scenario: An answer may be a docstring
    Given the summarizer answers
      """
      A summary in a docstring.
      """
    When the policy is applied
    Then the history is compacted

  Scenario Outline: A summarizer may fail from some time on
    When the summarizer fails <how>
    And the policy is applied
    Then the history is <state>
    And the summarizer is asked <tries>

    Examples:
      | how                            | state         | tries   |
      | every time                     | not compacted | 3 times |
      | every time saying "overloaded" | not compacted | 3 times |
      | 1 time                         | compacted     | 2 times |
      | 1 time with HTTP 503           | compacted     | 2 times |
      | 1 time with HTTP 429 and retry-after 7 | compacted | 2 times |
      | 2 times saying "overloaded"    | compacted     | 3 times |

  Scenario: The waits are told in seconds
    When the summarizer fails 2 times
    And the policy is applied
    Then the waits between the tries grow from at least 1 seconds

  Scenario: A try and all tries may take a second
    Given the policy
      """
      compaction: {summary: {attempts: 1, timeout: 1s, total_timeout: 1s}}
      steps: [{name: summarise, do: compact}]
      """
    When the summarizer hangs
    And the policy is applied
    Then a try may take 1 second, and all tries 1 second
    And the history is not compacted

  Scenario Outline: Files may come and go while the agent works
    When the working directory has the <files>
    And the agent has read the files "a.py" and "b.py" with <tool>
    And the file "b.py" is deleted from the working directory
    And the policy is applied
    Then the file "a.py" is restored
    And a warning says "'b.py' is not restored: there is no such file"

    Examples:
      | files                                 | tool      |
      | files "a.py" and "b.py" of 10 tokens  | read_file |
      | files "a.py" and "b.py" that read "x" | Read      |

  Scenario: A file may be read and go before anything happens
    Given the working directory has the file "a.py" that reads "a"
    And the agent has read the file "a.py"
    And the file "a.py" is deleted from the working directory
    When the policy is applied
    Then no file is restored
    When the working directory has the file "a.py" that reads "a"
    And the agent has read the files "b.py" and "c.py"
    And the agent has read the file "a.py"
    And the policy is applied
    Then the file "a.py" is restored

  Scenario: The waits of a second summary are its own
    Given the policy
      """
      model: {context_window: 20000}
      steps: [{name: squeeze, do: compact, when: {tokens: {at_least: 50%}}}]
      """
    And the summarizer fails 1 time
    And a user message of 15,000 tokens
    When the policy is applied
    Then the waits between the tries grow from at least 1 second
    When the summarizer fails 2 times
    And the session continues for 1 turn with a user message of 15,000 tokens each
    Then the summarizer is asked 5 times
    And the waits between the tries grow from at least 1 second

  Scenario: An archive that the store let go of is gone
    Given the policy
      """
      model: {context_window: 20000}
      compaction: {archive: true}
      store: {retention: {max_age: 1d}}
      steps: [{name: squeeze, do: compact, when: {tokens: {at_least: 50%}}}]
      """
    And the summarizer answers "Short."
    And a user message of 15,000 tokens
    When the policy is applied
    Then the file "archive/compaction-001.json.zst" is written
    When 30 days pass
    And the store is collected
    Then the file "archive/compaction-001.json.zst" is gone

  Scenario Outline: Calls and results are part of a turn in the <shape> shape
    Given the policy "context-compact"
    And the messages have the <shape> shape
    And 2 parallel Bash results of 30 tokens
    When the policy is applied
    Then user and assistant take turns

    Examples:
      | shape            |
      | Anthropic        |
      | OpenAI           |
      | OpenAI Responses |

  Scenario: A result of a tool that is called archive is none
    Given the policy
      """
      min_tokens: 100
      items: {tool_result: {offload: true}}
      steps: [{name: retire, do: offload}]
      """
    And 2 archive_get results of 3,000 tokens
    When the policy is applied
    Then 2 files are written
    And no archive is written

  Scenario: The older words for the instructions work
    When the policy is applied
    Then the summarizer is told "words"
    And the summarizer receives "words"
