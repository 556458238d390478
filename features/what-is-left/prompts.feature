Feature: What a model is told of how to summarise, in the words of the policy
  `summary.prompt` takes the place of the library's own instructions; its fields bring sections, rules,
  the length and an earlier summary.

  Background:
    Given the policy
      """
      compaction:
        summary:
          by: anthropic
          prompt: "Hand over in {max_words} words.\n{sections}\n{rules}\nBefore: {earlier_summary}"
          sections: [Done]
          rules: [Name each file.]
          max_words: 90
          verify: false
          check: {sections: false, min_words: 0}
        min_new: 0
      steps: [{name: compact, do: compact, when: {messages: {at_least: 2}}}]
      """
    And the summarizer answers "The port is moved."

  Scenario: The prompt is as the policy words it
    Given a user message that reads "move the port"
    And an assistant message that reads "moved"
    And a user message that reads "go on"
    When the policy is applied
    Then the history is compacted
    And the summarizer receives "Hand over in 90 words.\n## Done\n- Name each file.\nBefore: "
    And the summarizer sees "move the port"
