Feature: The summary

  Background:
    Given the policy "context-compact"
    And the summarizer answers "The summary."
    And the messages:
      | role      | text              |
      | system    | You are an agent. |
      | user      | Rename the API.   |
      | assistant | The API is next.  |
    And a user message of 160,000 tokens

  @F-004 @BR-3.2-11 @BR-3.2-13
  Scenario: What is replaced is what is summarised
    When the policy is applied
    Then the summarizer sees "Rename the API."
    And the summarizer sees "The API is next."
    And the summarizer does not see "You are an agent."
    And the summarizer is asked one time

  @F-004 @BR-3.2-12
  Scenario: A model of Anthropic is asked
    When the policy is applied
    Then the summary is asked of anthropic with the model claude-haiku-4-5

  @F-004 @BR-3.2-12
  Scenario: Another model may be asked
    Given the policy:
      """
      extends: context-compact
      compaction: {summary: {model: claude-sonnet-5}}
      """
    When the policy is applied
    Then the summary is asked of anthropic with the model claude-sonnet-5

  @F-004 @BR-3.2-14
  Scenario Outline: The summary has five sections
    When the policy is applied
    Then the summarizer receives "## <section>\n<ask>"

    Examples:
      | section | ask |
      | Goals & Decisions | What the user wants, forbids and prefers, and what was decided. |
      | File Operations | The files that were read, written or edited, and their last known state. |
      | Tool Calls | The tools that were used, for what, and what they showed. |
      | Task Status | What is done and what is left. |
      | Errors & Resolutions | What went wrong, and how it was resolved. |

  @F-004 @BR-1.2-3 @BR-3.2-15
  Scenario: The task status tells what was being done last, and what comes next
    When the policy is applied
    Then the summarizer receives "Describe in detail what was being done in the most recent exchange, and the plan for the next steps."

  @F-004 @BR-1.2-3 @BR-3.2-16
  Scenario: The rule about the most recent messages stands word for word
    When the policy is applied
    Then the summarizer receives "Pay special attention to the MOST RECENT messages — summarize the current task state, what was just done, and what the next logical step should be. This information is critical because the original recent messages will NOT be preserved."

  @F-004 @BR-3.2-17
  Scenario: 1200 words are asked for
    When the policy is applied
    Then the summarizer receives "at most 1200 words"

  @F-004 @BR-3.2-17
  Scenario: Another number of words may be asked for
    Given the policy:
      """
      extends: context-compact
      compaction: {summary: {max_words: 300}}
      """
    When the policy is applied
    Then the summarizer receives "at most 300 words"

  @UC-006 @F-008 @BR-1.3-3 @BR-3.2-18
  Scenario: A summary that failed is asked for again
    Given the summarizer fails 2 times
    When the policy is applied
    Then the history is compacted
    And the summarizer is asked 3 times

  @UC-006 @F-008 @BR-3.2-18
  Scenario: Before it asks again the session waits, longer each time
    Given the summarizer fails 2 times
    When the policy is applied
    Then the history is compacted
    And the waits between the tries grow from at least 1 second

  @F-008 @BR-3.2-18
  Scenario: The session waits as long as the provider asks it to
    Given the summarizer fails 1 time with HTTP 429 and retry-after 7
    When the policy is applied
    Then the history is compacted
    And the waits between the tries grow from at least 7 seconds

  @F-008 @BR-3.2-18
  Scenario Outline: A request that the provider refuses for good is not made again
    Given the summarizer fails every time saying "no" with HTTP <status>
    When the policy is applied
    Then the history is not compacted
    And the summarizer is asked <times>
    And a warning says "the provider answered <status> no"

    Examples:
      | status | times    |
      | 400    | one time |
      | 401    | one time |
      | 529    | 3 times  |

  @F-008 @BR-3.2-18
  Scenario Outline: The provider's bills count, whatever came of the tries
    Given the summarizer fails <failures>
    And each try is billed 1000 tokens
    When <event>
    Then the history is <state>
    And the compaction reports
      | summary.attempts     | 3    |
      | summary.input_tokens | 3000 |

    Examples:
      | failures   | state         | event                                   |
      | every time | not compacted | the policy is applied                   |
      | 2 times    | compacted     | the policy is applied                   |
      | every time | not compacted | the function compact_messages is called |

  @UC-006 @F-008 @BR-1.3-3 @BR-3.2-18
  Scenario: After three tries that failed the list is returned as it was
    Given the summarizer fails every time saying "overloaded"
    When the policy is applied
    Then the history is not compacted
    And the same list is returned
    And the summarizer is asked 3 times
    And no archive is written
    And a warning says "after 3 attempts: no summary: overloaded"

  @F-008 @BR-4.1-2
  Scenario: All tries together take less than 30 seconds
    When the policy is applied
    Then a try may take 25 seconds, and all tries 25 seconds

  @F-008 @BR-3.2-18 @BR-4.1-2
  Scenario Outline: A model that does not answer in time has failed
    Given the policy:
      """
      extends: context-compact
      compaction: {summary: {backoff: 0s, attempts: 2, timeout: <each>, total_timeout: <total>}}
      """
    And the summarizer hangs
    When the policy is applied
    Then the history is not compacted
    And the same list is returned
    And the summarizer is asked <tries> times
    And a warning says "there was no answer within 1 s"

    Examples:
      | each | total | tries |
      | 1s   | 9s    | 2     |
      | 9s   | 1s    | 1     |

  @F-008 @BR-3.2-18
  Scenario: The next call tries anew
    Given the summarizer fails 3 times
    When the policy is applied
    And the policy is applied again
    Then the history is compacted
    And the summarizer is asked 4 times

  @F-004 @F-008 @BR-3.2-19 @BR-3.2-55
  Scenario Outline: A summary that says nothing is one that failed
    Given the summarizer answers "<answer>"
    When the policy is applied
    Then the history is not compacted
    And the same list is returned
    And the summarizer is asked 3 times
    And a warning says "the answer is empty"

    Examples:
      | answer |
      |        |
      | \u3000 |

  @F-004 @F-008 @BR-3.2-13 @BR-3.2-19
  Scenario Outline: Whatever the model answers is the summary, unless it is empty
    Given the model answers "<answer>"
    When the policy is applied
    Then the history is compacted
    And the summarizer is asked one time
    And the messages are:
      """
      [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "[Conversation compressed]\n\n<answer>"},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."}
      ]
      """
    And no warning is given

    Examples:
      | answer                                                       |
      | ok                                                           |
      | The API is renamed.                                          |
      | I'm sorry, I can't help with that.                           |
      | Sure! Let me run the tests.                                  |
      | 好的，接口已经改名。                                         |
      | [TOOL_CALLS] Bash                                            |

  @F-004 @F-008 @BR-3.2-19 @BR-3.2-55
  Scenario: A model that answers nothing has failed
    Given the model answers ""
    When the policy is applied
    Then the history is not compacted
    And the summarizer is asked 3 times
    And the waits between the tries grow from 0 seconds
    And a warning says "the answer is empty"

  @F-004 @F-008
  Scenario Outline: A policy may ask for a summary with every section
    Given the policy:
      """
      extends: context-compact
      compaction: {summary: {check: true}}
      """
    And the model answers "<answer>"
    When the policy is applied
    Then the history is not compacted
    And a warning says "<warning>"

    Examples:
      | answer                             | warning                                         |
      | All is done.                       | the answer lacks the sections Goals & Decisions |
      | I'm sorry, I can't help with that. | the model declined                              |

  @F-004 @F-008
  Scenario Outline: A policy may say what a summary must have
    Given the policy:
      """
      extends: context-compact
      compaction: {summary: {check: <check>}}
      """
    And the summarizer answers "All is done."
    When the policy is applied
    Then the history is not compacted
    And the summarizer is asked 3 times
    And a warning says "<warning>"

    Examples:
      | check            | warning                                     |
      | {sections: true} | the answer lacks the sections Goals & Decisions |
      | true             | the answer lacks the sections Goals & Decisions |
      | {min_words: 4}   | the answer has 3 words; at least 4 are required |

  @F-004
  Scenario: A summary of any length replaces the history
    Given the policy:
      """
      extends: context-compact
      steps:
        - {name: summarise, do: compact, when: {tokens: {at_least: 1}}}
      """
    And no messages
    And a user message of 10 tokens
    And the summarizer answers "This summary is a good deal longer than the few words that it stands for, and yet it is taken."
    When the policy is applied
    Then the history is compacted

  @F-004 @BR-3.2-21
  Scenario: The same list again gets the same beginning, and nobody is asked again
    When the policy is applied
    And the summarizer answers "Another summary."
    And the policy is applied again
    Then the prefix is unchanged
    And the summarizer is asked one time

  @F-004 @BR-3.2-21
  Scenario: A new process gives the same beginning
    When the policy is applied
    And the process restarts
    And the summarizer answers "Another summary."
    And the policy is applied again
    Then the prefix is unchanged
    And the summarizer is asked one time
