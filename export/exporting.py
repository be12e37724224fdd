"""From what lies on the disk, a checkpoint, a bundle or a teacher, to the finished folder."""

from pathlib import Path
from tempfile import TemporaryDirectory

from xsent.errors import DataError
from xsent.export.bundle import export_bundle
from xsent.export.folder import Written, check_place
from xsent.export.golden import check_processor
from xsent.export.interchange import WRITERS, export_interchange
from xsent.export.options import BUNDLES, DEFAULTS, ExportOptions, trained_layers
from xsent.export.parity import held_out_pairs
from xsent.export.static import without_layers
from xsent.export.teacher import export_teacher
from xsent.openvino_backend import import_openvino
from xsent.train.bundles import open_checkpoint
from xsent.train.sentence_transformer import MODULES


def export(source: Path, out: Path, options: ExportOptions = DEFAULTS) -> Written:
    """Make a folder; an XsentError where it cannot be made, before all the work where that can be known."""
    foreign = options.format in WRITERS
    check_place(out, replace=options.force if options.format in BUNDLES else None)
    if not foreign:
        check_processor(options.target)
    if options.format == "openvino":
        import_openvino("export")
    if options.format == "teacher":
        return export_teacher(source, out, options)
    if (source / MODULES).is_file():
        raise DataError(f"{source}: a model of sentence-transformers; --format teacher makes a teacher of it")
    with TemporaryDirectory() as folder:  # for what a bundle becomes as a checkpoint
        checkpoint = open_checkpoint(source, Path(folder) / "checkpoint")
        part, whole = checkpoint, None
        if options.num_layers == 0 and 0 not in trained_layers(checkpoint):
            options.form(checkpoint)  # before all the work
            fitted = [sides[1::2] for sides in held_out_pairs(checkpoint, options.gate_data).values()]
            part = without_layers(checkpoint, [text for sides in fitted for pair in sides for text in pair])
            whole = checkpoint
        return export_interchange(part, out, options) if foreign else export_bundle(part, out, options, whole)
