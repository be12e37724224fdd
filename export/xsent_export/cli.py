"""The `xsent-export` command."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from xsent.cli.options import JsonOption, split_names
from xsent.cli.program import App
from xsent.cli.terminal import format_table, log_to_stderr, one_line_errors
from xsent.errors import counted, find_extra, require_extra

if TYPE_CHECKING:
    from xsent_export.export import ExportResult


# The extra that a format needs, and its packages; others need only those of `export`.
_EXTRAS = {
    "openvino": ("openvino-export", "openvino", "nncf"),
    "gguf": ("gguf", "gguf"),
    "text": ("phone", "onnxruntime_extensions"),
    "teacher": ("teacher", "tokenizers"),
}

app = App()


@app.command(epilog="Example: xsent-export runs/builtin/checkpoints/final-0000000 my-model --int8")
@one_line_errors()
def run_export(
    checkpoint: Annotated[
        Path, typer.Argument(help="A checkpoint of xsent-train, a run (its last one), a bundle, or: builtin.")
    ],
    out: Annotated[Path, typer.Argument(help="The folder to create.")],
    format: Annotated[
        Literal["bundle", "openvino", "onnx", "sentence-transformers", "web", "gguf", "text", "teacher"],
        typer.Option(
            help="bundle: for xsent. openvino: a bundle with files for that backend. onnx, sentence-transformers, web, "
            "gguf (llama.cpp), text (phones): for other tools. teacher: a BERT of sentence-transformers in 8 bits, for "
            "xsent-train --teacher."
        ),
    ] = "bundle",
    int8: Annotated[
        bool, typer.Option("--int8", help="8 bits for the table and the layers. Default, unless the table has 4.")
    ] = False,
    int4_table: Annotated[
        bool, typer.Option("--int4-table", help="4 bits for the table, 8 bits for the layers.")
    ] = False,
    fp32: Annotated[bool, typer.Option("--fp32", help="Keep the trained weights in float32.")] = False,
    layers: Annotated[
        int | None, typer.Option(min=0, help="Number of layers to keep; one of the trained depths.")
    ] = None,
    dim: Annotated[
        int | None, typer.Option(min=1, help="Number of dimensions to keep; one of the trained ones.")
    ] = None,
    languages: Annotated[
        str | None, typer.Option(metavar="CODES", help="Languages whose pieces to keep, separated by commas.")
    ] = None,
    sample: Annotated[
        Path | None, typer.Option(help="Text or pairs in these languages; drop pieces that do not occur in it.")
    ] = None,
    gate_data: Annotated[
        Path | None, typer.Option(help="Pairs to measure on. Default: those held out from training.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(min=0, help="Points of P@1 that the worst language may lose. Default: 0.5.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the model. Default: that of the checkpoint.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing bundle.")] = False,
    tests: Annotated[
        Path | None, typer.Option("--eval", help="Folder of tests such as DATA/eval; adds the scores to the card.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Turn a checkpoint into a bundle that runs without torch.

    The bundle is compared with the checkpoint on pairs held out from training. If the worst language loses too much,
    the command fails and writes nothing.
    """
    find_extra("export", "torch", "onnx")
    if format in _EXTRAS:
        find_extra(*_EXTRAS[format])
    with require_extra("export"):  # here because torch and onnx take seconds to import, which --help need not wait for
        from xsent_export.export import export
        from xsent_export.options import ExportOptions
        from xsent_export.teacher import export_teacher

    if int8 + int4_table + fp32 > 1:
        raise typer.BadParameter("--int8, --int4-table and --fp32 exclude each other; use one")
    options = ExportOptions(
        format=format,
        precision="float32" if fp32 else "int4-table" if int4_table else "int8" if int8 else None,
        num_layers=layers,
        dim=dim,
        languages=None if languages is None else list(dict.fromkeys(split_names(languages))),
        sample=sample,
        gate_data=gate_data,
        tolerance=tolerance,
        name=name,
        force=force,
        tests=tests,
    )
    if format == "teacher":
        result = export_teacher(checkpoint, out, options)
    else:
        result = export(checkpoint, out, options)
    typer.echo(format_result(result, as_json))
    if result.parity and result.parity.remark:
        typer.echo(result.parity.remark, err=True)


def format_result(result: "ExportResult", as_json: bool) -> str:
    """Format the result of an export as text or JSON."""
    parity = result.parity
    agreement = result.agreement
    if as_json:
        made = {name: getattr(result, name) for name in ("precision", "layers", "dim", "bytes")}
        known = {"fingerprint": result.fingerprint} if result.fingerprint else {}
        measured = {"agreement": asdict(agreement)} if agreement else {"parity": parity and parity.as_json()}
        return json.dumps({"path": str(result.path), **known, **made, **measured})
    lines = [format_table(parity.rows())] if parity else []
    identity = f", fingerprint {result.fingerprint}" if result.fingerprint else ""
    depth = counted(result.layers, "layer")
    line = f"{result.path}: {result.precision}, {depth}, {result.dim} numbers, {result.bytes / 1e6:.1f} MB{identity}"
    if agreement:
        line += f"; cosine to the original over {agreement.sentences:,} sentences: mean "
        line += f"{agreement.cosine_mean:.4f}, minimum {agreement.cosine_min:.4f}"
    return "\n".join([*lines, line])


def main() -> None:
    """Run the command line. Exit codes: 0 success, 1 expected failure, 2 usage error, 130 Ctrl-C."""
    log_to_stderr(times=False)
    app()
