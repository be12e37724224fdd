"""How much golden vectors may differ on a processor."""

from xsent.bundle import Golden
from xsent_export.options import BundleSpec
from xsent_export.parity import tolerances


def test_processors_that_are_not_named_and_bundles_that_round_more_may_differ_more() -> None:
    allowed = tolerances(BundleSpec(2, 100), 1.0)
    assert len(allowed) == 7
    golden = Golden((), (), allowed)
    assert (golden.allowed("avx_vnni"), golden.allowed("avx2"), golden.allowed("riscv")) == (0.002, 0.002, 0.02)
    assert tolerances(BundleSpec(2, 100, "float32"), 1.0) == {"other": 0.0001}
    allowed = tolerances(BundleSpec(2, 100), 0.995)  # noise of 0.1 of a vector, six times that
    assert set(allowed.values()) == {0.06}
    assert tolerances(BundleSpec(0, 100), 0.995)["avx2"] == 0.002  # without layers nothing adds up
