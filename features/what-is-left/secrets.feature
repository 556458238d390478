Feature: Secrets that leave messages before anything else reads them
  Users of agents report that the keys in a file or in the output of a command are sent to the provider
  with each later call, and are left in transcripts: redacting what is printed is no help.

  Scenario: A key in the output of a command is in no list and in no file
    Given the policy
      """
      redact: {api_key: 'sk-[A-Za-z0-9]{20,}'}
      items: {tool_result: {offload: true}}
      min_chars: 100
      placeholder: "[in {store_path}]"
      steps: [{name: offload, do: offload}]
      """
    And a result "a" from Bash that reads
      """
      OPENAI_API_KEY=sk-abcdefghijklmnopqrstuvwx
      A line that makes this output long enough to leave the context of the agent.
      """
    And a result "b" that reads "sk-abcdefghijklmnopqrstuvwx"
    When the policy is applied
    Then the result "a" reads "[in tool_result/Bash/a.md]"
    And the file "tool_result/Bash/a.md" reads as follows
      """
      OPENAI_API_KEY=[redacted:api_key]
      A line that makes this output long enough to leave the context of the agent.
      """
    And the result "b" reads "[redacted:api_key]"

  Scenario: A pattern keeps its originals away from the agent, and nothing of another pattern
    Users who redact names report that they cannot tell later whose record an answer was about.
    Given the policy
      """
      redact:
        record: {pattern: 'CUST-\d+ \S+', keep: true}
        api_key: 'sk-[A-Za-z0-9]{20,}'
      """
    And a user message that reads "look at CUST-0042 sk-abcdefghijklmnopqrstuvwx"
    When the policy is applied
    Then the messages are
      """
      [{"role": "user", "content": "look at [redacted:record]"}]
      """
    And the original of "record" is kept as "CUST-0042 [redacted:api_key]"

  Scenario: Only the group of a pattern is replaced
    Given the policy
      """
      redact: {password: 'PASSWORD=(\S+)'}
      """
    And a user message that reads "export PASSWORD=hunter2 and go on"
    When the policy is applied
    Then the messages are
      """
      [{"role": "user", "content": "export PASSWORD=[redacted:password] and go on"}]
      """
