"""Numbers of the papers that ours stand beside."""

from typing import NamedTuple


class LayerCost(NamedTuple):
    """Memory in MB, and minutes per 10,000 steps at batch 128 on a V100."""

    memory: float
    minutes: float


TABLE_5 = {  # mao2021: number of layers and what training with them costs
    1: LayerCost(7_135, 19),
    2: LayerCost(11_607, 24),
    3: LayerCost(16_804, 29),
    4: LayerCost(21_923, 34),
    6: LayerCost(28_024, 44),
}
