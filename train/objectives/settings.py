"""The settings of each objective; a recipe names the objectives it wants under [stage.objectives]."""

from dataclasses import dataclass, fields

from xsent.train.settings import require


@dataclass(frozen=True)
class Objective:
    """What all objectives have: their weight in the sum."""

    weight: float = 1.0

    def __post_init__(self) -> None:
        require(self.weight > 0, f"weight = {self.weight} must be above 0; leave the objective out to be without it")
        temperature = getattr(self, "temperature", 0.0)
        require(temperature >= 0, f"temperature = {temperature} must not be negative")


@dataclass(frozen=True)
class Generative(Objective):
    """SMLM, XTR or UGT: the sentence vector predicts pieces (mao2021 eq. 1 to 4)."""


@dataclass(frozen=True)
class Masked(Objective):
    """MLM or TLM: hidden tokens are predicted from their own position.

    Attributes:
        share: Share of the tokens that is hidden.
    """

    share: float = 0.15

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.share < 1, f"share = {self.share} must lie between 0 and 1")


@dataclass(frozen=True)
class Align(Objective):
    """Find the translation in the batch (mao2021 eq. 5).

    Attributes:
        temperature: Divisor of the cosines; 0 is the paper's inner product.
        margin: Subtracted from the true pair's cosine.
    """

    temperature: float = 0.05
    margin: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.margin >= 0, f"margin = {self.margin} must not be negative")
        require(not self.margin or self.temperature > 0, f"margin = {self.margin} needs a temperature above 0")


@dataclass(frozen=True)
class Sim(Objective):
    """Equal similarity matrices in both languages (mao2021 eq. 6).

    Attributes:
        temperature: Divisor of the cosines.
        literal: The paper's form of it: inner products, diagonal included.
    """

    temperature: float = 0.05
    literal: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.literal or self.temperature > 0, "temperature = 0 is for the literal form alone")


@dataclass(frozen=True)
class SentenceCtl(Objective):
    """HiCTL between sentences (wei2020 eq. 2 to 4).

    Attributes:
        temperature: Divisor of the cosines.
    """

    temperature: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.temperature > 0, f"temperature = {self.temperature} must be above 0")


@dataclass(frozen=True)
class WordCtl(Objective):
    """HiCTL between a pair and its words (wei2020 eq. 5 and 6).

    Attributes:
        temperature: Divisor of the cosines.
        negatives: Pieces drawn against each pair.
    """

    temperature: float = 0.1
    negatives: int = 2048

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.temperature > 0, f"temperature = {self.temperature} must be above 0")
        require(self.negatives > 0, f"negatives = {self.negatives} must be above 0")


@dataclass(frozen=True)
class Distil(Objective):
    """The cosine to the teacher's vector (LASER3; tan2022 section 2).

    Attributes:
        english: Whether the English side learns too, not the translation alone.
    """

    english: bool = True


@dataclass(frozen=True)
class Co(Objective):
    """Find the teacher's vector among those of earlier batches (LASER3-CO; tan2022 section 3).

    Attributes:
        temperature: Divisor of the cosines.
        queue: Teacher vectors of earlier batches that are negatives.
        ignore_above: Cosine to the right vector above which an entry of the queue is no negative (CO-Filter: 0.9).
        english: Whether the English side learns too, not the translation alone.
    """

    temperature: float = 0.05
    queue: int = 4096
    ignore_above: float = 1.0
    english: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.temperature > 0, f"temperature = {self.temperature} must be above 0")
        require(self.queue > 0, f"queue = {self.queue} must be above 0")


@dataclass(frozen=True)
class Rows(Objective):
    """The mean of a sentence's rows where the teacher's input has its English translation (Artetxe et al. 2020).

    Attributes:
        contrast: Weight of finding the translation among those of the batch, beside the squared error.
        temperature: Divisor of the cosines.
    """

    contrast: float = 1.0
    temperature: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.contrast >= 0, f"contrast = {self.contrast} must not be negative")
        require(self.temperature > 0, f"temperature = {self.temperature} must be above 0")


@dataclass(frozen=True)
class Relate(Objective):
    """The teacher's cosines between the sentences of a batch, within English and across (Tung & Mori 2019)."""


@dataclass(frozen=True)
class Objectives:
    """The objectives of a stage; None where one is not wanted."""

    mlm: Masked | None = None
    tlm: Masked | None = None
    smlm: Generative | None = None
    xtr: Generative | None = None
    ugt: Generative | None = None
    align: Align | None = None
    sim: Sim | None = None
    sentence_ctl: SentenceCtl | None = None
    word_ctl: WordCtl | None = None
    distil: Distil | None = None
    co: Co | None = None
    relate: Relate | None = None
    rows: Rows | None = None

    def __post_init__(self) -> None:
        require(bool(self.weights), f"no objective; known are {', '.join(f.name for f in fields(self))}")
        mixed = self.rows is not None and bool(self.distil or self.co or self.relate)
        require(not mixed, "rows looks at the teacher's input, distil, co and relate at its vectors: not in one stage")

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each objective that is wanted."""
        wanted = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: objective.weight for name, objective in wanted.items() if objective is not None}

    @property
    def generative(self) -> tuple[str, ...]:
        """The wanted ones that hide one piece of each pair."""
        return tuple(name for name in ("smlm", "xtr", "ugt") if name in self.weights)

    @property
    def predicts(self) -> bool:
        """Whether pieces are predicted, so that a generative head is needed."""
        return bool(self.generative or self.mlm or self.tlm)

    @property
    def contrasts(self) -> bool:
        """Whether the sentence vectors of a batch are compared with each other."""
        return bool(self.align or self.sim or self.sentence_ctl)

    @property
    def distils(self) -> bool:
        """Whether a teacher is needed."""
        return bool(self.distil or self.co or self.relate or self.rows)

    @property
    def takes_english_alone(self) -> bool:
        """Whether sentences without translation have something to learn from, and nothing asks for the other side."""
        return self.distils and self.reads_english and not (self.predicts or self.word_ctl)

    @property
    def copies(self) -> bool:
        """Whether the teacher's vectors are to be copied, for which they need the student's dimension."""
        return bool(self.distil or self.co)

    @property
    def reads_english(self) -> bool:
        """Whether the English side has to be encoded: distillation can do with the teacher's vectors of it."""
        distilled = [part for part in (self.distil, self.co) if part is not None]
        return len(self.weights) > len(distilled) or any(part.english for part in distilled)
