Feature: What a summary replaces
  What a policy keeps before and behind the summary counts the messages that are there, and what is
  in the list already does not come back behind the summary.

  Scenario: Messages at the beginning that were dropped do not count among those that stay
    Given the policy
      """
      compaction: {keep_first: 2, keep_recent: {messages: 1}, min_new: 0}
      steps:
        - {name: retire, do: drop, select: {types: [tool_result], keep_recent: 1}}
        - {name: summarise, do: compact, when: {messages: {at_least: 7}}}
      """
    And the summarizer answers "The summary."
    And a user message that reads "the task"
    And 2 Bash results of 500 characters
    And a user message that reads "the rules"
    And a Bash result of 500 characters
    And a user message that reads "the question"
    When the policy is applied
    And the policy is applied
    Then the history is not compacted
    Given a user message that reads "go on"
    And a Bash result of 500 characters
    And a user message that reads "and now"
    When the policy is applied
    Then the history is compacted
    And messages 1 and 6 are kept
    And message 9 is summarised

  Scenario: What is pinned and stays in the list is not in the summary too
    Given the policy
      """
      items: {skill: {match: {type: user_message, text: {startswith: "Skill:"}}, pin: true}}
      compaction:
        summary: {by: none}
        keep_recent: {messages: 1}
        wording: {summary: "[The history was replaced]"}
      steps: [{name: trim, do: compact, when: {messages: {at_least: 4}}}]
      """
    And a user message that reads "Skill: never push"
    And 2 Bash results of 500 characters
    And a user message that reads "Skill: test first"
    When the policy is applied
    Then the messages are
      """
      [
        {"role": "user", "content": "[The history was replaced]\n\n## Pinned\nSkill: never push"},
        {"role": "assistant", "content": "Understood. I have the context from the compressed conversation. Continuing work."},
        {"role": "user", "content": "Skill: test first"}
      ]
      """

  Scenario Outline: A file whose content is still in the list does not come back
    Given the policy
      """
      tools: {read_file: {reads_file: path}}
      compaction: {keep_recent: {messages: <kept>}, restore: {max_files: 5}, min_new: 0}
      steps: [{name: summarise, do: compact, when: {messages: {at_least: 5}}}]
      """
    And the summarizer answers "The summary."
    And the working directory has the files "a.py" and "b.py" that read "PORT = 8081"
    And a user message that reads "the task"
    And the agent has read the files "a.py" and "b.py"
    When the policy is applied
    Then the <files> restored

    Examples:
      | kept | files                       |
      | 0    | files "b.py" and "a.py" are |
      | 2    | file "a.py" is              |

  Scenario: As many large files come back as the policy says
    Given the policy
      """
      tools: {read_file: {reads_file: path}}
      compaction: {restore: {max_files: 2, large_files: windows}}
      steps: [{name: summarise, do: compact}]
      """
    And the summarizer answers "The summary."
    And the working directory has the files "a.py", "b.py" and "c.py" that read "PORT = 8081"
    And a user message that reads "the task"
    And the agent has read the files "a.py", "b.py" and "c.py"
    When the policy is applied
    Then the files "c.py" and "b.py" are restored

  Scenario Outline: A file that would leave the list hardly below its gate does not come back
    The next message would open the gate again, and the next summary would cost as much as this one.

    Given the policy
      """
      tools: {read_file: {reads_file: path}}
      compaction: {restore: {max_files: 1}}
      steps: [{name: summarise, do: compact, when: {tokens: {at_least: 2000}}}]
      """
    And the summarizer answers "The summary."
    And the working directory has the file "a.py" of <size> tokens
    And a user message of 2,000 tokens
    And the agent has read the file "a.py"
    When the policy is applied
    Then the history is compacted
    And <file> restored

    Examples:
      | size  | file               |
      | 1,800 | the file "a.py" is |
      | 1,900 | no file is         |

  Scenario Outline: No summary is paid for where what stays is larger than the window
    Given the policy
      """
      model: {context_window: 1000}
      compaction: {keep_recent: {messages: 1}}
      steps: [{name: summarise, do: compact, when: {tokens: {at_least: 80%}}}]
      """
    And the summarizer answers "The summary."
    And an assistant message of 300 tokens
    And a user message of <newest> tokens
    When the policy is applied
    Then the history is <state>
    And the summarizer is asked <times>

    Examples:
      | newest | state         | times    |
      | 900    | compacted     | one time |
      | 1,100  | not compacted | no time  |

  Scenario Outline: A summary is not made again for the sake of a few new messages
    Given the policy
      """
      compaction: {min_new: 50%}
      steps: [{name: summarise, do: compact, when: {messages: {at_least: 3}}}]
      """
    And the summarizer answers "It is told at length what was done, what was tried before, and what is left."
    And 3 Bash results of 100 tokens
    When the policy is applied
    Then the history is compacted
    Given a user message of <new> tokens
    When the policy is applied
    Then the history is <state>

    Examples:
      | new | state         |
      | 10  | not compacted |
      | 90  | compacted     |
