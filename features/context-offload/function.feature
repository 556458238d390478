Feature: One call offloads the results of a list
  `offload_tool_results` is the preset `context-offload` without a policy file or a session. It
  returns the new messages, how many results were offloaded, how many characters they had, and
  their files.

  Background:
    Given the environment variable OFFLOAD_RATIO_THRESHOLD is not set
    And the policy "context-offload"
    And a user message of 50 characters
    And a result "b" of 300 characters from Bash
    And a result "short" of 99 characters from Bash
    And a result "a" of 400 characters from Read

  @F-004 @BR-3.2-4 @BR-3.2-29
  Scenario Outline: The function counts the results that it offloads
    When the function <function> is called
    Then the result reports 2 offloaded items
    And the results "b" and "a" are offloaded
    And the result "short" is kept

    Examples:
      | function                   |
      | offload_tool_results       |
      | offload_tool_results_async |

  @F-004 @BR-3.2-5 @BR-3.2-30
  Scenario Outline: The function sums the characters of the originals
    When the function <function> is called
    Then 700 characters are freed

    Examples:
      | function                   |
      | offload_tool_results       |
      | offload_tool_results_async |

  @F-004 @BR-3.2-6 @BR-3.2-7 @BR-3.2-31
  Scenario Outline: The function lists the files in the order of the results, by absolute paths
    When the function <function> is called
    Then the result lists the files "tool-result-b.md" and "tool-result-a.md"
    And the paths of the files are absolute

    Examples:
      | function                   |
      | offload_tool_results       |
      | offload_tool_results_async |

  @F-003 @BR-3.2-26 @BR-3.2-27
  Scenario: The function leaves the relative path in the place of the content
    When the function offload_tool_results is called
    Then the result "a" reads "[Content offloaded to: ./tool-result-a.md]"
    And the result "b" reads "[Content offloaded to: ./tool-result-b.md]"

  @F-001 @BR-3.2-11 @BR-3.2-21
  Scenario: The function copies what changes and nothing else
    When the function offload_tool_results is called
    Then the input is not changed
    And unchanged messages are the same objects
    And changed messages are deep copies

  @F-001 @BR-3.2-20
  Scenario Outline: A writer of the caller's writes the files
    When the function <function> is called with
      | writer | <writer> |
    Then the result lists the files "tool-result-b.md" and "tool-result-a.md"
    And only the files "tool-result-a.md" and "tool-result-b.md" are written by the writer
    And 700 characters are freed

    Examples:
      | function                   | writer       |
      | offload_tool_results       | synchronous  |
      | offload_tool_results_async | synchronous  |
      | offload_tool_results_async | asynchronous |

  @F-001 @BR-3.2-15 @BR-3.2-20
  Scenario Outline: The error of a writer keeps the writer's own words and its cause
    When the function <function> is called with
      | writer | raising |
    Then it fails with a StoreError that says "cannot be written: the archive is sealed" because of a ConnectionError

    Examples:
      | function                   |
      | offload_tool_results       |
      | offload_tool_results_async |

  @BR-3.2-14
  Scenario Outline: The function returns an empty list as it is
    Given no messages
    When the function <function> is called
    Then the same list is returned
    And the result reports no offloaded item
    And no characters are freed
    And no folder is made

    Examples:
      | function                   |
      | offload_tool_results       |
      | offload_tool_results_async |

  @BR-3.2-15
  Scenario Outline: The function raises an error when a file cannot be written
    When the disk is full
    And the function <function> is called
    Then it fails with a StoreError that says "No space left"

    Examples:
      | function                   |
      | offload_tool_results       |
      | offload_tool_results_async |

  @F-001 @BR-3.2-13
  Scenario Outline: A writer gets each result under one id in a file of its own
    Given a result "b" of 500 characters from Bash
    When the function <function> is called with
      | writer | <writer> |
    Then the result lists the files "tool-result-b.md", "tool-result-a.md" and "tool-result-b-1.md"
    And 1,200 characters are freed

    Examples:
      | function                   | writer       |
      | offload_tool_results       | synchronous  |
      | offload_tool_results_async | asynchronous |

  @F-001 @BR-3.2-13
  Scenario Outline: A writer keeps the file that a placeholder of the list names
    Given the caller passes the edited messages back
    And a result "c" that reads "the first result of this id, which has many more words than are needed to make it one hundred characters long"
    When the function <function> is called with
      | writer | <writer> |
    Given a result "c" of 500 characters from Bash
    When the function <function> is called with
      | writer | <writer> |
    Then the result lists the file "tool-result-c-1.md"
    Given a result "c" of 600 characters from Bash
    When the function <function> is called with
      | writer | <writer> |
    Then the result lists the file "tool-result-c-2.md"
    And the 1st result "c" reads "[Content offloaded to: ./tool-result-c.md]"
    And the file "tool-result-c.md" contains "the first result of this id"

    Examples:
      | function                   | writer       |
      | offload_tool_results       | synchronous  |
      | offload_tool_results_async | synchronous  |
      | offload_tool_results_async | asynchronous |

  @F-001 @BR-3.2-20
  Scenario: An asynchronous writer is awaited in the event loop of its caller
    When the function offload_tool_results_async is called with
      | writer | asynchronous |
    Then the files "tool-result-a.md" and "tool-result-b.md" are written by the writer

  @F-001 @BR-3.2-15
  Scenario: An asynchronous writer in a synchronous call is an error
    When the function offload_tool_results is called with
      | writer | asynchronous |
    Then it fails with a StoreError that says "the writer is asynchronous"
    And no file is written

  @F-003 @BR-3.2-27
  Scenario: The caller may ask for absolute paths in the placeholders
    When the function offload_tool_results is called with
      | paths | absolute |
    Then the result "a" reads "[Content offloaded to: {root}/tool-result-a.md]"
