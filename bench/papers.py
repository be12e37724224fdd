"""What mao2021 says that layers cost (table 5), and ours beside it."""

from collections.abc import Mapping

from xsent.bench.report.tables import NONE, Table, number

TABLE_5 = {  # layers: memory in MB, and minutes per 10,000 steps at batch 128 on a V100
    1: (7_135, 19),
    2: (11_607, 24),
    3: (16_804, 29),
    4: (21_923, 34),
    6: (28_024, 44),
}


def beside_table_5(ours: Mapping[int, tuple[float, float]], headings: tuple[str, str]) -> Table:
    """Time and memory by layers, and the paper's, each also as a multiple of one layer's."""
    rows = []
    for layers, costs in ours.items():
        cells = [str(layers)]
        for place, paper in ((0, 1), (1, 0)):
            cells += [number(costs[place]), number(costs[place] / ours[1][place]) if 1 in ours else NONE]
            if layers in TABLE_5:
                cells += [number(TABLE_5[layers][paper]), number(TABLE_5[layers][paper] / TABLE_5[1][paper])]
            else:
                cells += [NONE, NONE]
        rows.append(cells)
    times = "× 1 layer"
    return Table(["layers", headings[0], times, "paper, min", times, headings[1], times, "paper, MB", times], rows)
