Feature: Instruction files come back after every summary
  `restore.always` names files such as AGENTS.md, which say how to work here. An agent that reads them
  itself has lost them once a summary has replaced that reading.

  Background:
    Given the policy
      """
      compaction: {restore: {always: [AGENTS.md, CLAUDE.md]}}
      tools: {Read: {reads_file: path}}
      steps: [{name: summarise, do: compact, when: {messages: {at_least: 6}}}]
      """
    And the working directory has the file "AGENTS.md" that reads "Run make check before a commit."
    And the working directory has the file "src/a.py" of 50 tokens
    And the agent has read the file "src/a.py" with Read
    And 3 Bash results of 500 characters

  Scenario: They come before the files that were read
    When the policy is applied
    Then the files "AGENTS.md" and "src/a.py" are restored
    And no warning is given

  Scenario: They are read again after the next summary
    Given the caller passes the edited messages back
    When the policy is applied
    Given the working directory has the file "AGENTS.md" that reads "Never push."
    And 3 Bash results of 500 characters
    When the policy is applied
    Then the files "AGENTS.md" and "src/a.py" are restored
    When the policy is applied again
    Then the first restored file reads like "*Never push.*"
