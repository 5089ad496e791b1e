"""Real data that ships with the package. Needs numpy only."""

from ccq_core.datasets.emoji import EmojiDataset, EmojiItems, Translation, load_emoji

__all__ = ["EmojiDataset", "EmojiItems", "Translation", "load_emoji"]
