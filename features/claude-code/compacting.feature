Feature: What a compaction of Claude Code's own must not lose
  Claude Code replaces a long conversation by a summary. What the summary lacks of the user's orders
  and exact values, of open tasks and of edited files is quoted behind it, and nothing else.

  Background:
    Given the policy "claude-code"
    And the messages
      """
      [{"role": "user", "content": "Never push to main."},
       {"role": "assistant", "content": "Understood."},
       {"role": "user", "content": "The staging port is 8081."},
       {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "Edit",
        "input": {"file_path": "src/limits.py", "old_string": "a\nb", "new_string": "b\nc"}}]},
       {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}]
      """

  Scenario: What the summary lacks is carried, in time order
    When the host compacts to "The limits were changed."
    Then only "Never push to main.", "The staging port is 8081." and "src/limits.py" are carried

  Scenario: Nothing is carried where the summary has everything
    When the host compacts to "limits.py was edited for port 8081. Pushing to main is never allowed."
    Then nothing is carried

  Scenario: A summary that turns a prohibition around lacks it
    When the host compacts to "Port 8081, limits.py. Next: push to main."
    Then only "Never push to main." is carried

  Scenario: A policy of your own carries fewer files
    Given the policy
      """
      apiVersion: policyctx/v1
      name: mine
      extends: claude-code
      carry: {files: 0}
      """
    When the host compacts to "Port 8081."
    Then only "Never push to main." is carried

  Scenario: The ten files that were edited last are carried
    Given the recording "eleven-edits.json"
    When the host compacts to "Port 8081, never pushed to main, and limits.py."
    Then only "src/part_02.py", "src/part_03.py", "src/part_04.py", "src/part_05.py", "src/part_06.py", "src/part_07.py", "src/part_08.py", "src/part_09.py", "src/part_10.py" and "src/part_11.py" are carried
