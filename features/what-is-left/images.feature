Feature: What is left of images
  Each image of a message goes to a file of its own.

  Scenario: Two images of one message can be read back
    Given the policy
      """
      items: {image: {offload: true}}
      steps: [{name: pictures, do: offload, select: {types: [image], min_chars: 0}}]
      """
    And the messages
      """
      [
        {"role": "user", "content": [
          {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "Zmlyc3QgcGljdHVyZSBmaXJzdCBwaWN0dXJlIGZpcnN0IHBpY3R1cmUgZmlyc3QgcGljdHVyZSBmaXJzdCBwaWN0dXJlIGZpcnN0IHBpY3R1cmUgZmlyc3QgcGljdHVyZSBmaXJzdCBwaWN0dXJlIGZpcnN0IHBpY3R1cmUgZmlyc3QgcGljdHVyZSBmaXJzdCBwaWN0dXJlIGZpcnN0IHBpY3R1cmUgZmlyc3QgcGljdHVyZSBmaXJzdCBwaWN0dXJlIGZpcnN0IHBpY3R1cmUg"}},
          {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "c2Vjb25kIHBpY3R1cmVzZWNvbmQgcGljdHVyZXNlY29uZCBwaWN0dXJlc2Vjb25kIHBpY3R1cmVzZWNvbmQgcGljdHVyZXNlY29uZCBwaWN0dXJlc2Vjb25kIHBpY3R1cmVzZWNvbmQgcGljdHVyZXNlY29uZCBwaWN0dXJlc2Vjb25kIHBpY3R1cmVzZWNvbmQgcGljdHVyZXNlY29uZCBwaWN0dXJlc2Vjb25kIHBpY3R1cmVzZWNvbmQgcGljdHVyZXNlY29uZCBwaWN0dXJl"}}]},
        {"role": "assistant", "content": "I see two pictures."},
        {"role": "user", "content": "Thanks."}
      ]
      """
    When the policy is applied
    Then 2 images are offloaded
    And every image can be read back
    And the last image can be restored
