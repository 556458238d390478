Feature: When nothing is done at all
  A gate that stays closed costs nothing: the caller gets back the very list that was given, and no
  folder and no file is made. What is looked at first is told first: nothing there, nothing to
  offload, not enough of it.

  Background:
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is not set
    And the policy "context-offload"

  @UC-007 @F-006 @BR-3.2-7 @BR-3.2-10
  Scenario: An empty list is skipped
    Given no messages
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "there is nothing in the messages"
    And the same list is returned
    And no file is written
    And no folder is made

  @UC-007 @F-006 @BR-3.2-7
  Scenario Outline: Messages without a character are skipped for being empty
    Given <piece> of 0 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "there is nothing in the messages"
    And the same list is returned

    Examples:
      | piece          |
      | a user message |
      | a result       |

  @UC-008 @F-006 @BR-3.2-7 @BR-3.2-11
  Scenario: Without a result nothing is to be offloaded
    Given a user message of 5000 characters
    And an assistant message of 5000 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "nothing is selected"
    And the same list is returned

  @UC-008 @F-006 @BR-3.2-7 @BR-3.2-12
  Scenario: Where all results are below 100 characters nothing is to be offloaded
    Given 20 Bash results of 99 characters
    And a result of 99 characters in blocks
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "nothing is selected"
    And every result is kept because "99 < 100 chars"
    And the same list is returned

  @UC-006 @BR-1.2-3 @BR-3.2-8 @BR-3.2-19 @BR-4.1-2
  Scenario: A step that is skipped leaves no trace
    Given a user message of 9000 characters
    And 3 Bash results of 500 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "< 20 %"
    And the same list is returned
    And the input is not changed
    And no file is written
    And no folder is made

  @UC-006 @BR-3.2-19
  Scenario: A folder that is there stays as it is
    Given the root folder exists
    And a file "tool-result-call_2.md" that reads "old"
    And a user message of 9000 characters
    And 3 Bash results of 500 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "< 20 %"
    And the same list is returned
    And the root folder holds only the file "tool-result-call_2.md"
    And the file "tool-result-call_2.md" reads "old"

  @UC-006 @BR-1.2-3 @BR-4.1-2
  Scenario: Where the gate stays closed, a full disk is no error
    Given a user message of 9000 characters
    And a result of 500 characters
    When the disk is full
    And the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "5.263 % < 20 %"
    And the same list is returned

  @UC-006 @BR-3.2-3 @BR-3.2-8 @BR-4.3-2
  Scenario: The caller sees by the numbers that nothing was done
    Given a user message of 9000 characters
    And a result of 500 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "5.263 % < 20 %"
    And the result reports no offloaded item
    And no characters are freed

  @BR-3.2-18
  Scenario: To look is not to touch
    Given a user message of 100 characters
    And a result "a" of 500 characters
    When only a plan is made
    Then the gate "ratio" of the step "offload-tool-results" opens
    And the input is not changed
    And no file is written
    And no folder is made

  @BR-3.2-20
  Scenario: Every call looks at its own list
    Given a result "a" of 500 characters
    When the policy is applied
    Then the gate "ratio" of the step "offload-tool-results" opens because "100 % >= 20 %"
    Given a user message of 9500 characters
    When the policy is applied again
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "5 % < 20 %"
    And the result "a" is kept
    And the same list is returned
    Given a result "b" of 2500 characters
    When the policy is applied again
    Then the gate "ratio" of the step "offload-tool-results" opens because "24 % >= 20 %"
    And 2 results are newly offloaded

  @BR-3.2-20
  Scenario: What is out already counts by its placeholder only
    Given the caller passes the edited messages back
    And a user message of 100 characters
    And a result "a" of 500 characters
    When the policy is applied
    Then the result "a" is offloaded
    When the policy is applied again
    Then the gate "ratio" of the step "offload-tool-results" stays closed because "nothing is selected"
    And the same list is returned
