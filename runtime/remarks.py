"""What a call has to say about its sentences once it has seen them all."""

import warnings
from dataclasses import dataclass

from xsent.options import LongSentenceWarning, UnknownTextWarning


@dataclass
class Remarks:
    """Counts of sentences that deserve a warning; one a call, however many there are.

    Attributes:
        sentences: How many there were.
        cut: Those with more tokens than the encoder reads, cut.
        unknown: Those mostly of characters that no piece of the vocabulary has.
    """

    sentences: int = 0
    cut: int = 0
    unknown: int = 0

    def add(self, other: "Remarks") -> None:
        """Count the sentences of another part too."""
        self.sentences += other.sentences
        self.cut += other.cut
        self.unknown += other.unknown

    def warn(self, max_length: int, languages: tuple[str, ...]) -> None:
        """Warn the caller of the function that calls this.

        Args:
            max_length: Tokens that the encoder reads.
            languages: Those it was trained for.
        """
        if self.cut:
            message = (
                f"{self.cut:,} of {self.sentences:,} sentences had more than {max_length} tokens and were cut; "
                "on_long='split' encodes all of them"
            )
            warnings.warn(message, LongSentenceWarning, stacklevel=3)
        if self.unknown:
            message = (
                f"{self.unknown:,} of {self.sentences:,} sentences are mostly of characters that this model does not "
                f"know, their vectors mean little; it was trained for {', '.join(languages)}"
            )
            warnings.warn(message, UnknownTextWarning, stacklevel=3)
