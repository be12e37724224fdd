"""The modules of the page, where Node finds them."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from xsent_apps.web.site import Site

_FOLDER = TemporaryDirectory()  # removed when the tests end


@cache
def page_modules() -> Path:
    """A folder with the modules and nothing else."""
    folder = Path(_FOLDER.name)
    for name, file in Site.of(None).files.items():
        if name.endswith(".js"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.path, folder / name)
    (folder / "package.json").write_text('{"type": "module"}')  # so that Node takes them as a browser does
    return folder
