"""How commands end."""

import errno

import pytest

from xsent.errors import BundleError
from xsent.terminal import one_line_errors


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (BundleError("x: missing;\n copy it"), 1, "Error: x: missing; copy it\n"),
        (ValueError("k = 0 must be at least 1"), 1, "Error: k = 0 must be at least 1\n"),
        (TypeError("expected str"), 1, "Error: expected str\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "Error: No space left on device\n"),
        (FileNotFoundError(errno.ENOENT, "No such file", "a.npy"), 1, "Error: a.npy: No such file\n"),
        (BrokenPipeError(), 1, ""),
        (KeyboardInterrupt(), 130, "Error: interrupted\n"),
    ],
)
def test_expected(capsys: pytest.CaptureFixture[str], error: BaseException, code: int, line: str) -> None:
    with pytest.raises(SystemExit) as caught, one_line_errors():
        raise error
    assert caught.value.code == code
    assert capsys.readouterr().err == line


def test_bugs_keep_their_traceback() -> None:
    with pytest.raises(ZeroDivisionError), one_line_errors():
        raise ZeroDivisionError


def test_as_a_decorator() -> None:
    @one_line_errors()
    def command(name: str) -> str:
        """Kept."""
        return name

    assert command("x") == "x"
    assert command.__doc__ == "Kept."
