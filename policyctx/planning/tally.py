"""`Tally`: the size of a list by message, and of each of its beginnings."""


class Tally:
    """The size of a list that grows, as sums over its messages, each in logarithmic time.

    A Fenwick tree: the node at `i` holds the sum of the `i & -i` messages that end there.
    """

    def __init__(self) -> None:
        self.total = 0
        self._tree = [0]

    def __len__(self) -> int:
        return len(self._tree) - 1

    def append(self, amount: int) -> None:
        """Add a message of this size at the end."""
        end = len(self._tree)
        held, width = amount, 1
        while width < end & -end:
            held += self._tree[end - width]
            width *= 2
        self._tree.append(held)
        self.total += amount

    def change(self, message: int, by: int) -> None:
        """Change the size of the message at this position by `by`."""
        self.total += by
        node = message + 1
        while node < len(self._tree):
            self._tree[node] += by
            node += node & -node

    def before(self, message: int) -> int:
        """Return the size of all messages before this position."""
        found, node = 0, min(message, len(self))
        while node:
            found += self._tree[node]
            node -= node & -node
        return found
