Feature: How a file is named after an id with signs that no path may have
  `store.escape` encodes such a sign, or puts `_` in its place; two ids with one name are a conflict.

  Background:
    Given a result "call/1" that reads "the first of the two results"
    And a result "call:1" that reads "the second of the two results"

  Scenario Outline: The sign is encoded, or replaced
    Given the policy
      """
      store: {path: "{item_id}.md", escape: <escape>}
      min_chars: 9
      items: {tool_result: {offload: true}}
      placeholder: "[{store_path}]"
      steps: [{name: offload, do: offload}]
      """
    When the policy is applied
    Then the result "call/1" reads "[<first>]"
    And the result "call:1" reads "[<second>]"
    And every offloaded item can be read back

    Examples:
      | escape  | first         | second        |
      | percent | call%2F1.md   | call%3A1.md   |
      | _       | call_1.md     | call_1-1.md   |

  Scenario: Where a conflict is an error, the second one stays in the context
    Given the policy
      """
      store: {path: "{item_id}.md", escape: _, on_conflict: error}
      min_chars: 9
      items: {tool_result: {offload: true}}
      placeholder: "[{store_path}]"
      steps: [{name: offload, do: offload, select: {keep_recent: 1}}]
      """
    And a result "new" that reads "the third of the two results"
    When the policy is applied
    Then at least 1 result is kept because "not_saved"
