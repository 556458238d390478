Feature: A preview at arrival becomes a bare path later
  Agents that save a long result leave its head and tail in the list, where these add up in a long
  session (agenc-core #1736, hermes-agent #66537). A later step leaves the path of the same file.

  Background:
    Given the policy
      """
      min_chars: 1000
      items: {tool_result: {offload: true}}
      steps:
        - name: preview
          on: arrival
          do: offload
          placeholder: {text: "{head}...{tail}\nWhole: {path}", head: {chars: 300}, tail: {chars: 300}}
        - name: path
          do: offload
          placeholder: "In {relative_path}"
          select: {placeholders: true, min_chars: 400, keep_recent: {items: 1, per: all}}
      """
    And a session with 2 Bash results of 3,000 characters
    When the policy is applied

  Scenario: The newest result keeps its preview
    Then the first Bash result is offloaded by the step "path"
    And the last Bash result is offloaded by the step "preview"
    And 2 files are written
    And the file of the first Bash result holds its original content

  Scenario Outline: The next turn replaces one placeholder and writes one file
    Given <list>
    And 1 Bash result of 3,000 characters
    When <event>
    And the policy is applied
    Then the 2nd Bash result is newly offloaded by the step "path"
    And the 2nd Bash result reads like "In ./tool_result/Bash/*.md"
    And the last Bash result is offloaded by the step "preview"
    And 3 files are written
    And the first Bash result can be read back
    And the 2nd Bash result can be restored
    And in every turn the prefix is unchanged up to the first new decision

    Examples:
      | list                                       | event                |
      | a user message that reads "go on"          | 1 minute passes      |
      | the caller passes the edited messages back | 1 minute passes      |
      | the caller passes the edited messages back | the process restarts |

  Scenario: A placeholder below the threshold stays
    Given the policy
      """
      min_chars: 1000
      items: {tool_result: {offload: true}}
      steps:
        - {name: preview, on: arrival, do: offload, placeholder: "A result of the tool is in {path}"}
        - {name: path, do: offload, placeholder: "{path}", select: {placeholders: true}}
      """
    And 1 Bash result of 3,000 characters
    When the policy is applied
    And the policy is applied
    Then the last Bash result is offloaded by the step "preview"
