"""The tables of the ablation: variants that stand together, under the papers' names and beside the papers' numbers."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from xsent.bench.ablation.plan import Plan, Variant
from xsent.errors import DataError
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

RETRIEVAL = "XSR en→fr"  # what the papers' first number stands beside
CLASSIFICATION = "SIB en→fr"  # and their second: the paper's MLDoc text is licensed
MAO = ("paper XSR en→fr", "paper MLDoc en→fr")

INNER = Align(weight=2.0, temperature=0.0)  # the paper's
UGT = Objectives(ugt=Generative())
SYSTEM = Objectives(ugt=Generative(), align=INNER, sim=Sim(weight=2.0))
LITERAL = Objectives(ugt=Generative(), align=INNER, sim=Sim(weight=2.0, literal=True))  # the paper's


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    label: str  # the paper's name of it
    variant: Variant
    paper: tuple[float, ...] = ()  # its numbers, under the group's `paper` headings; empty where it has none
    measures: str = ""  # a suffix of the measures to show instead of the plain ones, such as those of a prefix


@dataclass(frozen=True)
class Group:
    """One table."""

    name: str  # what `--only` takes
    title: str
    note: str  # what to know
    rows: tuple[Row, ...]
    paper: tuple[str, ...] = ()  # headings of the paper's numbers


def groups(plan: Plan) -> list[Group]:
    """All tables, in the order in which they are trained."""
    tables = (generative, contrastive, layers, sizes, hictl, negatives, matryoshka, distillation)
    return [table(plan) for table in tables]


def chosen(plan: Plan, only: Collection[str]) -> list[Group]:
    """The tables of some names; all where none is named."""
    known = {group.name: group for group in groups(plan)}
    if unknown := sorted(set(only) - known.keys()):
        raise DataError(f"no group {', '.join(unknown)}; there are {', '.join(known)}")
    return [group for name, group in known.items() if not only or name in only]


def variants(plan: Plan) -> dict[str, Variant]:
    """Every variant by key, each once, although several tables may show it."""
    return {row.variant.key: row.variant for group in groups(plan) for row in group.rows}


def generative(plan: Plan) -> Group:
    """One generative task each, and TLM."""
    rows = (
        Row("MLM", plan.scratch("mlm", Objectives(mlm=Masked())), (19.6, 78.5)),
        Row("SMLM", plan.scratch("smlm", Objectives(smlm=Generative())), (85.0, 75.0)),
        Row("XTR", plan.scratch("xtr", Objectives(xtr=Generative())), (89.5, 84.2)),
        Row("MLM ⊕ XTR", plan.scratch("mlm-xtr", Objectives(mlm=Masked(), xtr=Generative())), (84.1, 82.2)),
        Row("UGT", plan.scratch("ugt", UGT), (89.8, 85.1)),
        Row("TLM", plan.scratch("tlm", Objectives(tlm=Masked()))),
    )
    title = "Generative tasks (mao2021, table 6; TLM: wei2020)"
    return Group("generative", title, "Two layers from scratch.", rows, MAO)


def contrastive(plan: Plan) -> Group:
    """Contrastive tasks beside UGT and alone."""
    literal, margin = Align(temperature=0.0), Align(temperature=0.05, margin=0.1)
    rows = (
        Row("UGT", plan.scratch("ugt", UGT), (89.8, 85.1)),
        Row("UGT + align", plan.scratch("ugt-align", Objectives(ugt=Generative(), align=INNER)), (89.9, 84.1)),
        Row("UGT + align + sim (literal)", plan.scratch("ugt-align-sim-literal", LITERAL), (90.2, 82.3)),
        Row("UGT + align + sim (masked diagonal)", plan.scratch("ugt-align-sim", SYSTEM)),
        Row("align alone (inner product)", plan.scratch("align-inner", Objectives(align=literal))),
        Row("align alone (cosine, τ 0.05)", plan.scratch("align-cosine", Objectives(align=Align(temperature=0.05)))),
        Row("align alone (cosine, margin 0.1)", plan.scratch("align-margin", Objectives(align=margin))),
    )
    note = "Two layers from scratch. The paper's align is the inner product; its sim keeps the diagonal."
    return Group("contrastive", "Contrastive tasks (mao2021, table 7)", note, rows, MAO)


def layers(plan: Plan) -> Group:
    """Numbers of layers."""
    paper = {1: (89.4, 81.7), 2: (90.2, 85.1), 3: (90.9, 84.2), 4: (91.4, 84.2), 6: (91.2, 83.0)}
    warm = {n: plan.two_layers() if n == 2 else plan.warm(f"layers-{n}", num_layers=n) for n in (0, 1, 2, 3, 4, 6)}
    scratch = {n: plan.scratch(f"scratch-{n}", SYSTEM, num_layers=n) for n in (0, 1, 4)}
    scratch[2] = plan.scratch("ugt-align-sim", SYSTEM)
    rows = [Row("the shared table, as it is", plan.table())]
    rows += [Row(f"N = {n}", variant, paper.get(n, ())) for n, variant in warm.items()]
    rows += [Row(f"N = {n} from scratch", scratch[n]) for n in sorted(scratch)]
    note = (
        "Above: align (cosine) over one shared table that goes on learning; below: UGT + align + sim from scratch. "
        "The paper's rows are from scratch; they stand beside ours over the table."
    )
    return Group("layers", "Layers (mao2021, table 5)", note, tuple(rows), MAO)


def sizes(plan: Plan) -> Group:
    """Batch size and dimension."""
    system = plan.scratch("ugt-align-sim", SYSTEM)
    batches = {n: plan.scratch(f"batch-{n}", SYSTEM, batch=n) for n in (plan.batch_size // 2, 2 * plan.batch_size)}
    dims = {n: replace(plan.scratch(f"dim-{n}", SYSTEM), dim=n) for n in (plan.dim // 2, 2 * plan.dim)}
    batches[plan.batch_size] = dims[plan.dim] = system
    paper = [(89.6, 82.9), (90.2, 84.1), (90.2, 82.9)]
    rows = [Row(f"batch {n}", batches[n], paper.pop(0)) for n in sorted(batches)]
    rows += [Row(f"{n} dimensions", dims[n]) for n in sorted(dims)]
    note = (
        "UGT + align + sim from scratch; as many pairs with every batch size. Figure 2 has no numbers; its text "
        "has 512 dimensions significantly better than 256."
    )
    return Group("sizes", "Batch size and dimension (mao2021, table 9 and figure 2)", note, tuple(rows), MAO)


def hictl(plan: Plan) -> Group:
    """HiCTL's losses."""
    sentence, word, masked = SentenceCtl(), WordCtl(), Masked()
    everything = Objectives(mlm=masked, tlm=masked, sentence_ctl=sentence, word_ctl=word)
    rows = (
        Row("MLM", plan.scratch("mlm", Objectives(mlm=masked))),
        Row("TLM", plan.scratch("tlm", Objectives(tlm=masked))),
        Row("sentence CTL", plan.scratch("sentence-ctl", Objectives(sentence_ctl=sentence))),
        Row("word CTL", plan.scratch("word-ctl", Objectives(word_ctl=word))),
        Row("MLM + sentence CTL", plan.scratch("mlm-sentence-ctl", Objectives(mlm=masked, sentence_ctl=sentence))),
        Row("MLM + TLM + sentence CTL + word CTL", plan.scratch("hictl", everything)),
    )
    note = "Two layers from scratch. The paper has no ablation of its losses; on XNLI it has 77.3, XLM-R 76.2."
    return Group("hictl", "HiCTL (wei2020)", note, rows)


def negatives(plan: Plan) -> Group:
    """Hard negatives, which the papers do not have."""
    cluster = plan.two_layers("cluster", order="cluster", clusters=plan.clusters)
    note = "Align (cosine), two layers over the shared table."
    return Group("negatives", "Negatives", note, (Row("random", plan.two_layers()), Row("cluster", cluster)))


def matryoshka(plan: Plan) -> Group:
    """Matryoshka prefixes, which the papers do not have."""
    short = plan.dim // 4
    trained = {
        "none": plan.two_layers(),
        "dimensions": plan.two_layers("prefixes", prefixes=(short, plan.dim)),
        "layers": plan.two_layers("layer-prefixes", layer_prefixes=(0, 1, 2)),
    }
    shortened = f"{short} dimensions"
    sizes = {"whole": "", shortened: shortened, "1 layer": "1 layers", "0 layers": "0 layers"}
    rows = tuple(
        Row(f"{label}: {size}", variant, measures=suffix)
        for label, variant in trained.items()
        for size, suffix in sizes.items()
    )
    note = "Align (cosine), two layers over the shared table; one training each, measured at several sizes."
    return Group("matryoshka", "Matryoshka prefixes", note, rows)


def distillation(plan: Plan) -> Group:
    """Distillation on and off."""
    filtered = plan.warm("co-filter", Objectives(co=Co(ignore_above=0.9)), order="length", shuffle=False)
    rows = (
        Row("none: align", plan.two_layers()),
        Row("LASER3: cosine", plan.warm("distil", Objectives(distil=Distil()))),
        Row("CO", plan.warm("co", Objectives(co=Co()))),
        Row("CO-Filter", filtered),
    )
    note = (
        "Two layers over the shared table. The paper's languages have few pairs; its numbers are xsim errors and BLEU."
    )
    return Group("distillation", "Distillation (tan2022)", note, rows)
