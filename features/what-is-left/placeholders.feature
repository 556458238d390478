Feature: What a placeholder shows of the text that it stands for
  The text of a placeholder has fields, and keys beside it say how much of the item they show.

  Scenario: A placeholder in an input tells of the string that it stands for
    Given the policy
      """
      min_chars: 9
      items: {tool_result: {offload: true}}
      placeholder: {text: "[{chars}: {head}]", head: {chars: 3}}
      steps: [{name: clear, do: clear, select: {types: [tool_result], with_input: true}}]
      """
    And the messages
      """
      [
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "Edit", "input":
            {"old": "def f(): return one", "new": "class Two: the_second = 2"}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": "The file was changed."}
        ]}
      ]
      """
    When the policy is applied
    Then the messages are
      """
      [
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": [
          {"type": "tool_use", "id": "a", "name": "Edit", "input":
            {"old": "[19: def]", "new": "[25: cla]"}}
        ]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "a", "content": "[21: The]"}
        ]}
      ]
      """

  Scenario Outline: Characters are shown to the last, lines without the newline of the last
    Given the policy
      """
      min_chars: 9
      items: {tool_result: {offload: true}}
      placeholder: {text: "[{head}]", head: <extent>}
      steps: [{name: clear, do: clear}]
      """
    And a result "a" that reads "one\ntwo\nthree\nfour"
    When the policy is applied
    Then the result "a" reads <text>

    Examples:
      | extent      | text           |
      | {chars: 4}  | "[one\n]"      |
      | {chars: 3}  | "[one]"        |
      | {lines: 1}  | "[one]"        |
      | {lines: 2}  | "[one\ntwo]"   |

  Scenario Outline: A gap is shown only where something is left out
    Given the policy
      """
      min_chars: 9
      items: {tool_result: {offload: true}}
      placeholder:
        text: "{head}{gap}{tail}"
        head: {lines: 1}
        tail: {lines: 1}
        gap: "\n[{omitted_lines} lines left out]\n"
        max_line_chars: 4
        cut_mark: "~"
        line_numbers: {width: 3, separator: "|"}
      steps: [{name: clear, do: clear, must_shrink: false}]
      """
    And a result "a" that reads <content>
    When the policy is applied
    Then the result "a" reads <text>

    Examples:
      | content                   | text                                      |
      | "one\ntwo\nthree\nfour"   | "  1\|one\n[2 lines left out]\n  4\|four" |
      | "one more\nthe last"      | "  1\|one ~\n  2\|the ~"                  |

  Scenario: An outline shows what tells most of a long output, with its lines
    Given the policy
      """
      items: {tool_result: {offload: true}}
      placeholder: {text: "{outline}\nWhole: {store_path}", outline: {tokens: 55}}
      steps: [{name: offload, do: offload}]
      """
    And a result "a" that reads
      """
      run 1 of 4
      compiling part 11
      compiling part 12
      compiling part 13
      compiling part 14
      compiling part 15
      compiling part 16
      compiling part 17
      compiling part 18
      compiling part 19
      error: no such file: lib/parse.c
      compiling part 20
      compiling part 21
      compiling part 22
      compiling part 23
      1 error
      """
    When the policy is applied
    Then the result "a" reads as follows
      """
      [outline: output, 16 lines; rows begin with their line]
      1 run 1 of 4
      2 compiling part 11 (×13 in 14 lines)
      11 error: no such file: lib/parse.c
      16 1 error
      Whole: tool_result/a.md
      """

  Scenario: The path of a file may stand without its dot
    Given the policy
      """
      items: {tool_result: {offload: true, placeholder: "[in {store_path}]"}}
      steps: [{name: offload, do: offload}]
      """
    And a result "a" of 2,000 characters from Bash
    When the policy is applied
    Then the result "a" reads "[in tool_result/Bash/a.md]"
