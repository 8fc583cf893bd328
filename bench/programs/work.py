"""Words counted, a tree of objects, JSON there and back, sorting by key."""
import collections
import json
import sys


class Node:
    __slots__ = ("key", "left", "right", "notes")

    def __init__(self, key):
        self.key, self.left, self.right, self.notes = key, None, None, []


def insert(root, key):
    node = root
    while node.key != key:
        side = "left" if key < node.key else "right"
        if getattr(node, side) is None:
            setattr(node, side, Node(key))
        node = getattr(node, side)
    node.notes.append((key, len(node.notes)))


words = [word for line in open(sys.argv[1]) for word in line.split()]
counts = collections.Counter(words)
lines = collections.defaultdict(list)
for number, word in enumerate(words):
    lines[word[:3]].append((number, word.upper()))
root = Node("m")
for word in words[::2]:
    insert(root, word)
records = [{"id": n, "name": word, "tags": [word[:2], word[-2:]], "weight": n / 7} for n, word in enumerate(words[:60000])]
back = json.loads(json.dumps(records))
back.sort(key=lambda record: (record["name"], -record["id"]))
print(counts.most_common(5), len(lines), sum(len(v) for v in lines.values()), back[0], back[-1])
print("-".join(f"{word}{n}" for n, word in enumerate(sorted(set(words))))[-60:])
