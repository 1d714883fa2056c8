"""Start the worker, by the path of this file or as ``python -m envkit.worker``.

By its path no folder is put before those of the interpreter's own packages: they are imported, and not what stands
beside the kit. Processes that are spawned run this file too, and find the package in the same way.
"""

import sys
from pathlib import Path

if not __package__:
    from importlib.util import module_from_spec, spec_from_file_location

    _here = Path(__file__).resolve().parent
    if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == _here:
        del sys.path[0]
    _spec = spec_from_file_location(
        "envkit", _here.parent / "__init__.py", submodule_search_locations=[str(_here.parent)]
    )
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules["envkit"] = module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["envkit"])

if __name__ == "__main__":
    from envkit.worker.command_line import main

    sys.exit(main())
