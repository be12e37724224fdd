"""The tables of the ablation: which variants stand together, under the papers' names and beside the papers' numbers."""

from collections.abc import Collection
from dataclasses import dataclass

from xsent.bench.ablation.plan import Plan
from xsent.bench.ablation.variants import TABLE, batches, dims
from xsent.errors import DataError

RETRIEVAL = "XSR en→fr"  # what the papers' first number stands beside
CLASSIFICATION = "SIB en→fr"  # and their second: the paper's MLDoc text is licensed
MAO = ("paper XSR en→fr", "paper MLDoc en→fr")


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
        label: The paper's name of it.
        key: The variant.
        paper: The paper's numbers, under the group's `paper` headings; empty where it has none.
        measures: A suffix of the measures to show instead of the plain ones, such as those of a prefix.
    """

    label: str
    key: str
    paper: tuple[float, ...] = ()
    measures: str = ""


@dataclass(frozen=True)
class Group:
    """One table.

    Attributes:
        name: What `--only` takes.
        title: Its heading.
        note: What to know.
        rows: Its lines.
        paper: Headings of the paper's numbers.
    """

    name: str
    title: str
    note: str
    rows: tuple[Row, ...]
    paper: tuple[str, ...] = ()


def groups(plan: Plan) -> list[Group]:
    """All tables, in the order in which they are trained."""
    return [*of_mao2021(plan), of_wei2020(), *of_negatives(plan), of_tan2022()]


def chosen(plan: Plan, only: Collection[str]) -> list[Group]:
    """The tables of some names; all where none is named.

    Raises:
        DataError: A name is unknown.
    """
    known = {group.name: group for group in groups(plan)}
    unknown = sorted(set(only) - known.keys())
    if unknown:
        raise DataError(f"no group {', '.join(unknown)}; there are {', '.join(known)}")
    return [group for name, group in known.items() if not only or name in only]


def of_mao2021(plan: Plan) -> list[Group]:
    """Tables 5, 6, 7 and 9 and figure 2 of mao2021."""
    small, large = batches(plan)
    narrow, wide = dims(plan)
    ugt = Row("UGT", "ugt", (89.8, 85.1))
    system = "ugt-align-sim"
    return [
        Group(
            "generative",
            "Generative tasks (mao2021, table 6; TLM: wei2020)",
            "Two layers from scratch.",
            (
                Row("MLM", "mlm", (19.6, 78.5)),
                Row("SMLM", "smlm", (85.0, 75.0)),
                Row("XTR", "xtr", (89.5, 84.2)),
                Row("MLM ⊕ XTR", "mlm-xtr", (84.1, 82.2)),
                ugt,
                Row("TLM", "tlm"),
            ),
            MAO,
        ),
        Group(
            "contrastive",
            "Contrastive tasks (mao2021, table 7)",
            "Two layers from scratch. The paper's align is the inner product; its sim keeps the diagonal.",
            (
                ugt,
                Row("UGT + align", "ugt-align", (89.9, 84.1)),
                Row("UGT + align + sim (literal)", "ugt-align-sim-literal", (90.2, 82.3)),
                Row("UGT + align + sim (masked diagonal)", system),
                Row("align alone (inner product)", "align-inner"),
                Row("align alone (cosine, τ 0.05)", "align-cosine"),
                Row("align alone (cosine, margin 0.1)", "align-margin"),
            ),
            MAO,
        ),
        Group(
            "layers",
            "Layers (mao2021, table 5)",
            "Above: align (cosine) over one shared table that goes on learning; below: UGT + align + sim from scratch. "
            "The paper's rows are from scratch; they stand beside ours over the table.",
            (
                Row("the shared table, as it is", TABLE),
                Row("N = 0", "layers-0"),
                Row("N = 1", "layers-1", (89.4, 81.7)),
                Row("N = 2", "layers-2", (90.2, 85.1)),
                Row("N = 3", "layers-3", (90.9, 84.2)),
                Row("N = 4", "layers-4", (91.4, 84.2)),
                Row("N = 6", "layers-6", (91.2, 83.0)),
                Row("N = 0 from scratch", "scratch-0"),
                Row("N = 1 from scratch", "scratch-1"),
                Row("N = 2 from scratch", system),
                Row("N = 4 from scratch", "scratch-4"),
            ),
            MAO,
        ),
        Group(
            "sizes",
            "Batch size and dimension (mao2021, table 9 and figure 2)",
            "UGT + align + sim from scratch; as many pairs with every batch size. Figure 2 has no numbers; its text "
            "has 512 dimensions significantly better than 256.",
            (
                Row(f"batch {small}", f"batch-{small}", (89.6, 82.9)),
                Row(f"batch {plan.batch_size}", system, (90.2, 84.1)),
                Row(f"batch {large}", f"batch-{large}", (90.2, 82.9)),
                Row(f"{narrow} dimensions", f"dim-{narrow}"),
                Row(f"{plan.dim} dimensions", system),
                Row(f"{wide} dimensions", f"dim-{wide}"),
            ),
            MAO,
        ),
    ]


def of_wei2020() -> Group:
    """HiCTL's losses."""
    return Group(
        "hictl",
        "HiCTL (wei2020)",
        "Two layers from scratch. The paper has no ablation of its losses; on XNLI it has 77.3, XLM-R 76.2.",
        (
            Row("MLM", "mlm"),
            Row("TLM", "tlm"),
            Row("sentence CTL", "sentence-ctl"),
            Row("word CTL", "word-ctl"),
            Row("MLM + sentence CTL", "mlm-sentence-ctl"),
            Row("MLM + TLM + sentence CTL + word CTL", "hictl"),
        ),
    )


def of_negatives(plan: Plan) -> list[Group]:
    """Hard negatives and Matryoshka prefixes, which the papers do not have."""
    short = plan.dim // 4
    return [
        Group(
            "negatives",
            "Negatives",
            "Align (cosine), two layers over the shared table.",
            (Row("random", "layers-2"), Row("cluster", "cluster")),
        ),
        Group(
            "matryoshka",
            "Matryoshka prefixes",
            "Align (cosine), two layers over the shared table; one training each, measured at several sizes.",
            tuple(
                Row(f"{label}: {size}", key, measures=suffix)
                for label, key in (("none", "layers-2"), ("dimensions", "prefixes"), ("layers", "layer-prefixes"))
                for size, suffix in (
                    ("whole", ""),
                    (f"{short} dimensions", f"{short} dimensions"),
                    ("1 layer", "1 layers"),
                    ("0 layers", "0 layers"),
                )
            ),
        ),
    ]


def of_tan2022() -> Group:
    """Distillation on and off."""
    return Group(
        "distillation",
        "Distillation (tan2022)",
        "Two layers over the shared table. The paper's languages have few pairs; its numbers are xsim errors and BLEU.",
        (
            Row("none: align", "layers-2"),
            Row("LASER3: cosine", "distil"),
            Row("CO", "co"),
            Row("CO-Filter", "co-filter"),
        ),
    )
