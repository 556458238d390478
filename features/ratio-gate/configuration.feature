Feature: The threshold is set by an environment variable
  OFFLOAD_RATIO_THRESHOLD says from which share on it is worth it, a fifth where it says nothing.

  Background:
    Given the policy "context-offload"

  @BR-1.2-2 @BR-3.2-4 @BR-4.4-1
  Scenario: Where it is not set the threshold is a fifth
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is not set
    And a user message of 801 characters
    And a result of 200 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "19.98 % < 20 %"

  @BR-1.2-2 @BR-3.2-4 @BR-4.4-1
  Scenario: An empty value is none
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is ""
    And a user message of 801 characters
    And a result of 200 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "19.98 % < 20 %"

  @BR-1.2-2 @BR-3.2-4 @BR-4.3-1
  Scenario Outline: From the share that it says the gate opens
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is "<threshold>"
    And a user message of <rest> characters
    And a result of <size> characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens because "<numbers>"
    And 1 result is offloaded

    Examples:
      | threshold | size | rest | numbers      |
      | 0.1       | 100  | 900  | 10 % >= 10 % |
      | 1e-1      | 100  | 900  | 10 % >= 10 % |
      | 0.15      | 150  | 850  | 15 % >= 15 % |
      | 0.2       | 200  | 800  | 20 % >= 20 % |
      | 0.3       | 300  | 700  | 30 % >= 30 % |
      | .5        | 300  | 300  | 50 % >= 50 % |
      | 0.7       | 700  | 300  | 70 % >= 70 % |

  @BR-1.2-2 @BR-3.2-4 @BR-4.3-1
  Scenario Outline: Below the share that it says the gate stays closed
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is "<threshold>"
    And a user message of <rest> characters
    And a result of <size> characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "<numbers>"
    And the same list is returned

    Examples:
      | threshold | size | rest | numbers        |
      | 0.1       | 100  | 901  | 9.99 % < 10 %  |
      | 0.3       | 300  | 701  | 29.97 % < 30 % |
      | 0.5       | 300  | 301  | 49.92 % < 50 % |
      | 0.7       | 700  | 301  | 69.93 % < 70 % |
      | 0.9       | 800  | 200  | 80 % < 90 %    |

  @BR-3.2-4
  Scenario Outline: Blanks around the value do not count
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is <threshold>
    And a user message of 700 characters
    And a result of 300 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens because "30 % >= <share> %"

    Examples:
      | threshold      | share |
      | " 0.25"        | 25    |
      | "0.25 "        | 25    |
      | "\t0.25\r\n"   | 25    |
      | " 30% "        | 30    |
      | "   "          | 20    |

  @F-006 @BR-3.2-15 @BR-5.1-2
  Scenario: At 0 the gate opens for whatever can be offloaded
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is "0"
    And a user message of 99900 characters
    And a result of 100 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens because "0.1 % >= 0 %"
    And 1 result is offloaded

  @UC-008 @F-006 @BR-3.2-7 @BR-3.2-16
  Scenario: At 0 it stays closed where nothing can be offloaded
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is "0"
    And a user message of 900 characters
    And a result of 99 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "nothing is selected"
    And the same list is returned

  @UC-007 @UC-008 @F-006 @BR-3.2-7
  Scenario: At 0 an empty list is skipped for being empty
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is "0"
    And no messages
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "there is nothing in the messages"
    And the same list is returned

  @F-006 @BR-3.2-17 @BR-5.1-2
  Scenario: At 1 the gate opens where all can be offloaded
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is "1"
    And a result of 100 characters
    And a result of 300 characters in blocks
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens because "100 % >= 100 %"
    And 2 results are offloaded

  @F-006 @BR-3.2-17
  Scenario Outline: At 1 it stays closed where there is anything else
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is "1"
    And a result "long" of 9000 characters
    And <other>
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "< 100 %"
    And the result "long" is kept

    Examples:
      | other                                |
      | a user message of 1 character        |
      | a result of 99 characters            |
      | a result of 100 characters from Bash |

  @F-006 @BR-3.2-1
  Scenario: It is all that is configured, the call itself is given nothing more
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is "0.5"
    And the root folder "out"
    And a user message of 400 characters
    And a result "a" of 400 characters
    When the policy is applied
    Then the root folder holds only the file "tool-result-a.md"

  @BR-1.3-3 @BR-5.1-2
  Scenario Outline: A value that is not a share from 0 to 1 is refused, with the line that asks for it
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is "<value>"
    And a result of 500 characters
    When the policy is applied
    Then it fails with a PolicyError that says "expected a number from 0 to 1 or a share such as 20%, got the value of ${OFFLOAD_RATIO_THRESHOLD:-0.2}"
    And no file is written

    Examples:
      | value |
      | abc   |
      | 1.5   |
      | -0.1  |
      | 0.5x  |
      | nan   |

  @BR-3.2-4
  Scenario: A percentage is a share too
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is "35%"
    And a user message of 651 characters
    And a result of 350 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "34.97 % < 35 %"
