Feature: Four queries
  The document's example: a tool of which two results stay, and one file read in each query.

  @BR-7-1 @BR-7-2 @BR-7-3 @BR-7-4 @BR-7-5 @BR-7-6 @BR-2.2-2 @BR-2.2-3
  Scenario: The first file goes at the third query, the second at the fourth
    Given the policy "context-filesystem"
    And the tool read_file is ephemeral and keeps 2 results
    And a user message that reads "Read file1.txt"
    When the policy is applied
    And a result "file1.txt" of 1,200 tokens arrives from read_file
    And the policy is applied before the next model call
    Then nothing is offloaded
    Given an assistant message that reads "I have read it."
    And a user message that reads "Read file2.txt"
    When the policy is applied
    And a result "file2.txt" of 1,200 tokens arrives from read_file
    And the policy is applied before the next model call
    Then nothing is offloaded
    And the result "file1.txt" is listed as kept
    Given an assistant message that reads "I have read it."
    And a user message that reads "Read file3.txt"
    When the policy is applied
    Then nothing is offloaded
    When a result "file3.txt" of 1,200 tokens arrives from read_file
    And the policy is applied before the next model call
    Then only the result "file1.txt" is newly offloaded
    And only the result "file1.txt" is offloaded
    Given an assistant message that reads "I have read it."
    And a user message that reads "Read file4.txt"
    When the policy is applied
    Then nothing is newly offloaded
    When a result "file4.txt" of 1,200 tokens arrives from read_file
    And the policy is applied before the next model call
    Then only the result "file2.txt" is newly offloaded
    And only the results "file1.txt" and "file2.txt" are offloaded
    And the results "file1.txt" and "file2.txt" are listed as offloaded
    And the results "file3.txt" and "file4.txt" are listed as kept
    And the file of every offloaded item holds its original content
    And in every turn the prefix is unchanged up to the first new decision
