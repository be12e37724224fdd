"""The objectives of a stage as a recipe writes them; `xsent_train.losses` computes them."""

from typing import Annotated, Any, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, field_validator, model_validator

from xsent_train.settings import Settings, Share, require

OTHER_TEXT = {"similarity", "retrieve"}  # objectives that learn from text other than pairs


class Objective(Settings):
    """Base of all objectives, with its weight in the sum. `distil = 2` is short for `distil = { weight = 2 }`."""

    weight: float = 1.0

    @model_validator(mode="before")
    @classmethod
    def _accept_number(cls, values: object) -> object:
        return with_weight(values)

    @field_validator("weight")
    @classmethod
    def _is_positive(cls, weight: float) -> float:
        require(weight > 0, f"{weight} must be above 0; omit the objective to disable it")
        return weight

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of its loss."""
        return self.model_dump(exclude={"weight"})


def with_weight(objective: object) -> object:
    """Turn a number into an objective's table with this weight; return anything else unchanged."""
    return {"weight": objective} if type(objective) in (int, float) else objective


class Masked(Objective):
    """Predict hidden tokens from their own position (MLM or TLM)."""

    share: Share = 0.15  # of the tokens to hide


class Align(Objective):
    """Find the translation in the batch (mao2021 eq. 5)."""

    temperature: NonNegativeFloat = 0.05  # divisor of the cosines, here and below; 0 is the paper's inner product
    margin: NonNegativeFloat = 0.0  # subtracted from the true pair's cosine

    @model_validator(mode="after")
    def _margin_is_of_cosines(self) -> Self:
        require(self.temperature or not self.margin, f"margin = {self.margin} needs a temperature above 0")
        return self


class Sim(Objective):
    """Equal similarity matrices in both languages (mao2021 eq. 6)."""

    temperature: NonNegativeFloat = 0.05
    literal: bool = False  # the paper's form: inner products, diagonal included

    @model_validator(mode="after")
    def _cosines_are_divided(self) -> Self:
        require(self.literal or self.temperature, "temperature = 0 is only for the literal form")
        return self


class SentenceCtl(Objective):
    """HiCTL between sentences (wei2020 eq. 2 to 4)."""

    temperature: PositiveFloat = 0.05
    shuffled: bool = False  # whether a sentence without translation is to find a copy of itself with shuffled tokens

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of its loss."""
        return self.model_dump(include={"temperature"})


class WordCtl(Objective):
    """HiCTL between a pair and its words (wei2020 eq. 5 and 6)."""

    temperature: PositiveFloat = 0.1
    negatives: PositiveInt = 2048  # pieces drawn for each pair


class Distil(Objective):
    """Bring vectors close to the teacher's, by cosine (LASER3; tan2022 section 2)."""

    english: bool = True  # whether the English side learns too, not only the translation


class ContrastiveDistil(Objective):
    """Find the teacher's vector among those of earlier batches (LASER3-CO; tan2022 section 2)."""

    temperature: PositiveFloat = 0.05
    queue: PositiveInt = 4096  # vectors of earlier batches
    batch: bool = False  # whether the other vectors of the batch are negatives too
    ignore_above: float = 1.0  # vectors with a cosine above this to the right one are not negatives (CO-Filter: 0.9)
    english: bool = True  # as in Distil


class EmbeddingMatch(Objective):
    """Bring the mean of a sentence's rows to the teacher's input for its English side (Artetxe et al. 2020)."""

    contrast: NonNegativeFloat = 1.0  # weight of finding the translation in the batch, relative to the squared error
    temperature: PositiveFloat = 0.05


class Similarity(Objective):
    """Correlate the cosines of scored pairs with people's scores."""

    pairs: Annotated[int, Field(ge=3)] = 64  # scored pairs per step, over all devices
    across: Annotated[float, Field(ge=0, le=1)] = 0.4  # share of them whose second sentence draws its own language


class Retrieve(Objective):
    """Find the passage that answers a query, and the query that a passage answers."""

    queries: Annotated[int, Field(ge=2)] = 32  # per step, over all devices
    block: Annotated[int, Field(ge=2)] = 16  # queries of one source; only their passages are negatives of each other
    tokens: PositiveInt = 128  # where passages are cut
    temperature: PositiveFloat = 0.05
    # Share of the queries whose answer is in another language, if there is one. Half of a block's answers are in a
    # query's own language: at 0.5 the language gives nothing away; above 0.5, the answer is more likely to be in
    # another one.
    across: Annotated[float, Field(ge=0, le=1)] = 0.5
    hard: Annotated[float, Field(ge=0, le=0.5)] = 0.5  # share of a block that are neighbours of the others

    @model_validator(mode="after")
    def _has_whole_blocks(self) -> Self:
        require(self.queries % self.block == 0, f"block = {self.block} must divide queries = {self.queries}")
        return self


class Objectives(Settings):
    """The objectives of a stage; None for those that are not used."""

    mlm: Masked | None = None
    tlm: Masked | None = None
    smlm: Objective | None = None  # these three predict pieces from the sentence vector (mao2021 eq. 1 to 4)
    xtr: Objective | None = None
    ugt: Objective | None = None
    align: Align | None = None
    sim: Sim | None = None
    sentence_ctl: SentenceCtl | None = None
    word_ctl: WordCtl | None = None
    distil: Distil | None = None
    contrastive_distil: ContrastiveDistil | None = None
    similarity_distil: Objective | None = None  # the teacher's cosines in a batch (Tung & Mori 2019)
    embedding_match: EmbeddingMatch | None = None
    similarity: Similarity | None = None  # on scored pairs, from the recipe's table [scored]
    retrieve: Retrieve | None = None  # on queries with passages, from the recipe's table [passages]

    @model_validator(mode="after")
    def _can_be_learnt_together(self) -> Self:
        require(self.weights, f"no objective; known are {', '.join(type(self).model_fields)}")
        mixed = self.embedding_match and (self.distil or self.contrastive_distil or self.similarity_distil)
        require(not mixed, "embedding_match needs the teacher's input and the others its vectors; use two stages")
        return self

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each objective that is used."""
        return {name: objective.weight for name, objective in self if objective is not None}

    @property
    def generative(self) -> tuple[str, ...]:
        """The objectives in use that hide one piece of each pair."""
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
        return bool(self.copies or self.similarity_distil or self.embedding_match)

    @property
    def distils_vectors(self) -> bool:
        """Whether a teacher's sentence vectors are needed, not only its input."""
        return self.distils and not self.embedding_match

    @property
    def copies(self) -> bool:
        """Whether the teacher's vectors are copied, which needs the student's dimension or a projection."""
        return bool(self.distil or self.contrastive_distil)

    @property
    def of_pairs(self) -> bool:
        """Whether any objective learns from translated pairs or plain sentences instead of another kind of text."""
        return bool(self.weights.keys() - OTHER_TEXT)

    @property
    def compares(self) -> bool:
        """Whether sentence vectors are compared, with each other or with a teacher's."""
        return bool(self.contrasts or self.distils or self.weights.keys() & OTHER_TEXT)

    @property
    def reads_english(self) -> bool:
        """Whether the English side must be encoded; pure distillation only needs the teacher's vectors of it."""
        copying = [objective for objective in (self.distil, self.contrastive_distil) if objective is not None]
        return len(self.weights.keys() - OTHER_TEXT) > len(copying) or any(one.english for one in copying)

    @property
    def takes_english_alone(self) -> bool:
        """Whether the stage can learn from a sentence without translation."""
        if self.shuffles:
            return not self.generative  # which predict the pieces of the other side
        return self.distils and self.reads_english and not (self.predicts or self.word_ctl)

    @property
    def shuffles(self) -> bool:
        """Whether a sentence without translation is compared with a copy of shuffled tokens."""
        return self.sentence_ctl is not None and self.sentence_ctl.shuffled
