"""What the ablation trains: every variant, each once, although several tables may show it."""

from dataclasses import dataclass, replace

from xsent.bench.ablation.plan import Plan
from xsent.train.config import Recipe, StageConfig
from xsent.train.objectives.settings import (
    Align,
    Co,
    Distil,
    Generative,
    Masked,
    Objectives,
    SentenceCtl,
    Sim,
    WordCtl,
)

TABLE = "table"  # the variant that warm ones start from

COSINE = Align(temperature=0.05)
INNER = Align(weight=2.0, temperature=0.0)  # the paper's
LITERAL = Sim(weight=2.0, literal=True)  # the paper's
MASKED_SIM = Sim(weight=2.0)


@dataclass(frozen=True)
class Variant:
    """One encoder to train and measure.

    Attributes:
        key: Its name, also of its folder.
        stage: How it is trained.
        warm: Whether it starts from the table that all warm variants share; else from nothing.
        dim: Dimension; None is the plan's.
        shorter: Prefixes of its vectors to measure too.
        shallower: Numbers of its layers to measure too.
    """

    key: str
    stage: StageConfig
    warm: bool = False
    dim: int | None = None
    shorter: tuple[int, ...] = ()
    shallower: tuple[int, ...] = ()

    @property
    def distils(self) -> bool:
        """Whether it needs a teacher."""
        return self.stage.objectives.distils

    def recipe(self, plan: Plan, seed: int) -> Recipe:
        """Its recipe."""
        return plan.recipe(self.key, self.stage, dim=self.dim or plan.dim, seed=seed)


def variants(plan: Plan) -> dict[str, Variant]:
    """Every variant by key."""
    everything = [table(plan), *generative(plan), *contrastive(plan), *sizes(plan), *hictl(plan), *warm(plan)]
    return {variant.key: variant for variant in everything}


def table(plan: Plan) -> Variant:
    """The table that warm variants start from: mean of rows, cosine, large random batches."""
    batch = 8 * plan.batch_size
    steps = max(1, plan.table_pairs // batch)
    objectives = Objectives(align=COSINE)
    stage = StageConfig(
        name=TABLE,
        num_layers=0,
        steps=steps,
        objectives=objectives,
        batch_size=batch,
        max_tokens=plan.max_tokens,
        table_learning_rate=5e-3,
        warmup=max(1, steps // 10),
        clip=0.0,
        validate_every=steps,
    )
    return Variant(TABLE, stage)


def from_scratch(plan: Plan, key: str, objectives: Objectives, *, num_layers: int = 2, batch: int = 0) -> Variant:
    """A variant that starts from nothing: every one at the same learning rates and for the same number of pairs."""
    batch = batch or plan.batch_size
    steps = max(1, plan.pairs // batch)
    stage = StageConfig(
        name=key,
        num_layers=num_layers,
        steps=steps,
        objectives=objectives,
        batch_size=batch,
        max_tokens=plan.max_tokens,
        learning_rate=1e-3,
        table_learning_rate=6e-3,
        warmup=max(1, steps // 10),
        validate_every=steps,
    )
    return Variant(key, stage)


def from_table(plan: Plan, key: str, *, objectives: Objectives | None = None, num_layers: int = 2) -> Variant:
    """A variant on the shared table, which goes on learning a little under new layers."""
    batch = 2 * plan.batch_size
    steps = max(1, plan.pairs // batch)
    stage = StageConfig(
        name=key,
        num_layers=num_layers,
        steps=steps,
        objectives=objectives or Objectives(align=COSINE),
        batch_size=batch,
        max_tokens=plan.max_tokens,
        learning_rate=3e-4,
        table_learning_rate=3e-4,
        warmup=max(1, steps // 10),
        validate_every=steps,
    )
    return Variant(key, stage, warm=True)


def generative(plan: Plan) -> list[Variant]:
    """One generative task each (mao2021, table 6), and TLM."""
    tasks = {
        "mlm": Objectives(mlm=Masked()),
        "smlm": Objectives(smlm=Generative()),
        "xtr": Objectives(xtr=Generative()),
        "mlm-xtr": Objectives(mlm=Masked(), xtr=Generative()),
        "ugt": Objectives(ugt=Generative()),
        "tlm": Objectives(tlm=Masked()),
    }
    return [from_scratch(plan, key, objectives) for key, objectives in tasks.items()]


def contrastive(plan: Plan) -> list[Variant]:
    """Contrastive tasks (mao2021, table 7), beside UGT and alone."""
    ugt = Generative()
    tasks = {
        "ugt-align": Objectives(ugt=ugt, align=INNER),
        "ugt-align-sim-literal": Objectives(ugt=ugt, align=INNER, sim=LITERAL),
        "ugt-align-sim": Objectives(ugt=ugt, align=INNER, sim=MASKED_SIM),
        "align-inner": Objectives(align=INNER.model_copy(update={"weight": 1.0})),
        "align-cosine": Objectives(align=COSINE),
        "align-margin": Objectives(align=COSINE.model_copy(update={"margin": 0.1})),
    }
    return [from_scratch(plan, key, objectives) for key, objectives in tasks.items()]


def sizes(plan: Plan) -> list[Variant]:
    """The paper's system in other sizes: layers, batch, dimension (tables 5 and 9, figure 2)."""
    system = Objectives(ugt=Generative(), align=INNER, sim=MASKED_SIM)
    found = [from_scratch(plan, f"scratch-{n}", system, num_layers=n) for n in (0, 1, 4)]
    found += [from_scratch(plan, f"batch-{n}", system, batch=n) for n in batches(plan)]
    return [*found, *(replace(from_scratch(plan, f"dim-{n}", system), dim=n) for n in dims(plan))]


def hictl(plan: Plan) -> list[Variant]:
    """HiCTL's losses (wei2020)."""
    sentence, word, masked = SentenceCtl(), WordCtl(), Masked()
    tasks = {
        "sentence-ctl": Objectives(sentence_ctl=sentence),
        "word-ctl": Objectives(word_ctl=word),
        "mlm-sentence-ctl": Objectives(mlm=masked, sentence_ctl=sentence),
        "hictl": Objectives(mlm=masked, tlm=masked, sentence_ctl=sentence, word_ctl=word),
    }
    return [from_scratch(plan, key, objectives) for key, objectives in tasks.items()]


def warm(plan: Plan) -> list[Variant]:
    """What is built on the shared table: layers, negatives, Matryoshka prefixes, distillation."""
    short, depths = (plan.dim // 4, plan.dim), (0, 1, 2)
    base = replace(from_table(plan, "layers-2"), shorter=short[:1], shallower=depths[:2])
    others = [from_table(plan, f"layers-{n}", num_layers=n) for n in (0, 1, 3, 4, 6)]

    def changed(key: str, **settings: object) -> Variant:
        return replace(base, key=key, stage=StageConfig(**{**dict(base.stage), "name": key, **settings}))

    distilled = {
        "distil": Objectives(distil=Distil()),
        "co": Objectives(co=Co()),
        "co-filter": Objectives(co=Co(ignore_above=0.9)),
    }
    students = {key: from_table(plan, key, objectives=objectives) for key, objectives in distilled.items()}
    by_length = students["co-filter"].stage.model_copy(update={"order": "length", "shuffle": False})
    students["co-filter"] = replace(students["co-filter"], stage=by_length)
    return [
        base,
        *others,
        changed("cluster", order="cluster", clusters=plan.clusters),
        changed("prefixes", prefixes=short),
        changed("layer-prefixes", layer_prefixes=depths),
        *students.values(),
    ]


def batches(plan: Plan) -> tuple[int, int]:
    """Half and double the plan's batch."""
    return plan.batch_size // 2, 2 * plan.batch_size


def dims(plan: Plan) -> tuple[int, int]:
    """Half and double the plan's dimension."""
    return plan.dim // 2, 2 * plan.dim
