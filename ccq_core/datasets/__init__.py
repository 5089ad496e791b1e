"""Real data that ships with the package. Needs numpy only."""

from ccq_core.datasets.emoji import EmojiDataset, EmojiItems, load_emoji

__all__ = ["EmojiDataset", "EmojiItems", "load_emoji"]
