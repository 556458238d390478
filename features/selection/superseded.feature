Feature: A read of a file leaves when a later one shows it again
  Agents read the same file again and again, and each copy is paid for in every call (cline #2470,
  librefang #4971, opencode-dynamic-context-pruning #451). An edit alone does not make a read stale:
  the old text and the edit are all that the agent knows of the file.

  Background:
    Given the policy
      """
      items: {tool_result: {offload: true}}
      tools:
        read: {reads_file: path, reads_lines: {first: first, last: last}}
        edit: {edits_file: path}
      steps: [{name: stale, do: clear, placeholder: "[gone]", select: {superseded: true}}]
      """

  Scenario Outline: A read is cleared by a later one of all of its lines
    Given the messages
      """
      [
        {"role": "user", "content": "mend it"},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "a.py", "first": 2, "last": 3}}]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": "the second line\nthe third line"}]},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "b", "name": "<tool>", "input": {"path": "<path>", "first": <first>, "last": 4}}]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "b", "content": "another line\nthe second line\nthe third line\nthe fourth"}]}
      ]
      """
    When the policy is applied
    Then <cleared> result is cleared
    And <kept> results are kept because "no later result that stands shows it again"

    Examples:
      | tool | path | first | cleared | kept |
      | read | a.py | 1     | 1       | 1    |
      | read | a.py | 3     | no      | 2    |
      | read | b.py | 1     | no      | 2    |
      | edit | a.py | 1     | no      | 2    |

  Scenario: The newest copy stays in each turn and after a restart
    Given the caller passes the edited messages back
    And the agent has read the file "notes.md" with read
    And the agent has read the file "notes.md" with read
    When the policy is applied
    Then the first read result is cleared because "shows it again"
    And the last read result is kept
    Given the agent has read the file "notes.md" with read
    When the process restarts
    And the policy is applied
    Then the first 2 read results are cleared
    And the last read result is kept
    And in every turn the prefix is unchanged up to the first new decision

  Scenario Outline: Behind an edit only a read of the whole file shows the lines again
    The edit may have moved them. It may also run beside the first read.

    Given the messages
      """
      [
        {"role": "user", "content": "mend it"},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "e", "name": "edit", "input": {"path": "<edited>"}},
          {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "a.py", "first": 2, "last": 3}}]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": "the second line\nthe third line"},
          {"type": "tool_result", "tool_use_id": "e", "content": "done"}]},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "b", "name": "read", "input": {"path": "a.py"<lines>}}]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "b", "content": "one\ntwo\nthree\nfour"}]}
      ]
      """
    When the policy is applied
    Then <cleared> result is cleared

    Examples:
      | edited   | lines                  | cleared |
      | a.py     | , "first": 1, "last": 4 | no      |
      | ./a.py   | , "first": 1, "last": 4 | no      |
      | b.py     | , "first": 1, "last": 4 | 1       |
      | a.py     |                        | 1       |

  Scenario Outline: The same call with the same text supersedes, unless there are pictures beside it
    Given the messages
      """
      [
        {"role": "user", "content": "look at it"},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": [
            {"type": "text", "text": "the page as it is now"}<picture>]}]},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "b", "name": "look", "input": {}}]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "b", "content": [
            {"type": "text", "text": "the page as it is now"}<picture>]}]}
      ]
      """
    When the policy is applied
    Then <cleared> result is cleared

    Examples:
      | picture                                                                                            | cleared |
      |                                                                                                    | 1       |
      | , {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}} | no      |
