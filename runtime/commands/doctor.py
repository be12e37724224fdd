"""`xsent doctor`."""

import json

import typer

from xsent.commands.options import BundleArgument, JsonOption
from xsent.terminal import FAILED, one_line_errors


@one_line_errors()
def doctor(bundle: BundleArgument = None, as_json: JsonOption = False) -> None:
    """Say what this machine is good for, what encoding takes on it, and what to mend.

    Exits with 1 if something does not work.
    """
    from dataclasses import asdict

    from xsent.bundle import Bundle, builtin_path
    from xsent.doctor import examine

    findings = []
    for finding in examine(Bundle.open(bundle or builtin_path())):
        findings.append(finding)
        if not as_json:
            typer.echo(f"{finding.status:<7}  {finding.subject:<13}  {finding.text}")
    problems = sum(finding.status == "problem" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"problems": problems, "findings": [asdict(finding) for finding in findings]}))
    else:
        typer.echo(f"{problems} problem{'s' * (problems > 1)}" if problems else "xsent works here")
    if problems:
        raise typer.Exit(FAILED)
