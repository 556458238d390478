Feature: A result that cannot fit into the window leaves
  The provider would reject the request. The largest results leave first, the newest ones too, and
  show how they begin and end; the agent reads the parts that it needs.

  Background:
    Given the policy "coding-agent"

  Scenario: A large result that fits stays
    Given a result "new" of 150,000 tokens from Bash
    When the policy is applied
    Then the result "new" is kept

  Scenario: The newest result leaves when it is larger than the window
    Given a result "new" of 250,000 tokens from Bash
    When the policy is applied
    Then the result "new" is offloaded by the step make-it-fit
    And the result "new" reads like "[Too large for the context: Bash result, * characters …]*"
    And no warnings are given

  Scenario: The largest leaves first, until the request is under 75 % of the window
    Given a result "middle" of 60,000 tokens from Bash
    And a result "largest" of 95,000 tokens from Read
    And a result "newest" of 50,000 tokens from Bash
    When the policy is applied
    Then only the result "largest" is offloaded

  Scenario: Of parallel results as many leave as it takes
    Given 3 parallel Bash results of 80,000 tokens
    When the policy is applied
    Then 2 results are offloaded

  Scenario: A result leaves also where the rest of the list takes up most of the window
    Given a user message of 180,000 tokens
    And a result "new" of 30,000 tokens from Bash
    When the policy is applied
    Then the result "new" is offloaded by the step make-it-fit

  Scenario: What the provider counts decides, once it has said so
    Given a result "new" of 150,000 tokens from Bash
    When the policy is applied
    Then the result "new" is kept
    When the provider counts 210,000 tokens
    And the policy is applied
    Then the result "new" is offloaded by the step make-it-fit

  Scenario: A request that no step makes fit is sent with a warning
    Given a user message of 210,000 tokens
    When the policy is applied
    Then nothing is offloaded
    And a warning says "more than the context window of 200,000"
    And a warning says "no step takes the newest user message"

  Scenario: What the provider counted is known after a restart
    Given the policy
      """
      min_chars: 100
      items: {tool_result: {offload: true}}
      steps:
        - {name: old, do: clear, select: {types: [tool_result], keep_recent: 1}}
        - {name: full, do: drop, select: {types: [image]}, when: {tokens: {at_least: 5000}}}
      """
    And 2 Bash results of 1,000 tokens
    When the policy is applied
    And the provider counts 6,000 tokens
    And the process restarts
    And the policy is applied
    Then the gate "tokens" of the step "full" opens
