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
