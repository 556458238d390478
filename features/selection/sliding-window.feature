Feature: A sliding window removes whole messages, groups or turns

  Background:
    Given the messages
      | role      | type   | tool | id | size           |
      | user      |        |      |    | 100 characters |
      | assistant | text   |      |    | 100 characters |
      | and       | call   | Bash | a  | 100 characters |
      | and       | call   | Bash | b  | 100 characters |
      | user      | result |      | a  | 100 characters |
      | and       | result |      | b  | 100 characters |
      | assistant | text   |      |    | 100 characters |
      | user      |        |      |    | 100 characters |
      | assistant | text   |      |    | 100 characters |
      | user      |        |      |    | 100 characters |

  Scenario Outline: A unit leaves when nothing in it is recent
    Given the policy
      """
      steps: [{name: window, do: drop, select: {types: ["*"], unit: <unit>, keep_recent: {messages: <kept>}}}]
      """
    When the policy is applied
    Then the context has <left> messages
    And user and assistant take turns

    Examples:
      | unit    | kept | left |
      | message | 3    | 3    |
      | group   | 3    | 3    |
      | turn    | 3    | 3    |
      | turn    | 2    | 3    |
      | turn    | 4    | 7    |

  Scenario: What was not selected goes along, and is saved
    Given the policy
      """
      steps: [{name: window, do: drop, select: {types: [tool_call], unit: turn}}]
      """
    When the policy is applied
    Then the first user message is dropped because "it goes with its turn"
    And the file of every dropped item holds its original content
    And the context has 3 messages

  Scenario: A pinned part keeps its unit
    Given the policy
      """
      items: {tool_result: {pin: true}}
      steps: [{name: window, do: drop, select: {types: [tool_call], unit: group}}]
      """
    When the policy is applied
    Then every Bash call is kept because "its group stays: pinned"

  Scenario Outline: The task stays while the oldest groups leave
    A window that trims the first message of the user lets the agent forget its task
    (strands-agents #2196, summarization-pydantic-ai #17).

    Given the policy
      """
      steps:
        - name: window
          do: drop
          select: {types: ["*"], unit: group, keep_first: {messages: <kept>}, until: {messages: {under: 5}}}
      """
    When the policy is applied
    Then the first user message is kept because "<reason>"
    And the context has 4 messages

    Examples:
      | kept | reason                                           |
      | 1    | among the first messages, 1 kept                 |
      | 0    | without it an assistant message would come first |

  Scenario: What leaves without being saved is in no file
    Given the policy
      """
      store: {state: none}
      steps:
        - {name: window, do: drop, save: false, select: {types: ["*"], unit: turn, keep_recent: {messages: 2}}}
      """
    When the policy is applied
    Then every Bash call is dropped
    And no folder is made

  Scenario Outline: The oldest leave until so many tokens are free
    Given the policy
      """
      model: {tokenizer: approximate}
      steps: [{name: window, do: drop, select: {types: [user_message], until: {frees: {at_least: <least>}}}}]
      """
    And no messages
    And a user message of 400 characters
    And a user message of 400 characters
    And a user message of 400 characters
    And a user message of 400 characters
    When the policy is applied
    Then <gone> user messages are dropped

    Examples:
      | least | gone |
      | 200   | 2    |
      | 201   | 3    |

  Scenario: A result stays while its call follows the last words of the list
    Given the policy
      """
      steps: [{name: window, do: drop, select: {types: [tool_result]}}]
      """
    And no messages
    And the messages
      | role      | type   | tool | id | size           |
      | user      |        |      |    | 100 characters |
      | assistant | text   |      |    | 100 characters |
      | and       | call   | Bash | a  | 100 characters |
      | user      | result |      | a  | 100 characters |
    When the policy is applied
    Then the result "a" is kept because "without it an assistant message would come last"
