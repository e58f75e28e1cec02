"""Starts the recorder in every Python process of a traced run; found through PYTHONPATH, by this name.

The environment says where to write (`GRAPHMEND_TRACE_FOLDER`), and in a run without torch.compile which
lines to watch. A `sitecustomize` of the user's own is run as well.
"""

import importlib.util
import json
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _theirs() -> None:
    """Run the module that this one hides, if there is one."""
    from importlib.machinery import PathFinder

    elsewhere = [path for path in sys.path if os.path.abspath(path or os.curdir) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _start() -> None:
    folder = os.environ.get("GRAPHMEND_TRACE_FOLDER")
    if not folder or not os.path.isdir(folder):
        return
    with open(os.path.join(folder, "started"), "w"):  # tells "nothing was compiled" from "nobody listened"
        pass
    above = os.path.dirname(_HERE)
    watch = os.environ.get("GRAPHMEND_TRACE_WATCH")
    if watch:
        with open(watch, encoding="utf-8") as file:
            watcher = _load("_graphmend_calls", os.path.join(above, "calls.py")).Watcher(json.load(file))
        watcher.write_to(folder)
        watcher.start()
        return
    recorder = _load("_graphmend_recorder", os.path.join(above, "recorder.py"))
    recorder.Recorder(folder).start()
    if os.environ.get("GRAPHMEND_TRACE_COMPILE") == "auto":
        _load("_graphmend_auto_compile", os.path.join(above, "auto_compile.py")).when_torch_is_imported()


def _load(name: str, path: str):  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


try:
    _start()
except Exception as error:  # the user's program runs all the same
    print(f"graphmend: note: this process is not traced: {type(error).__name__}: {error}", file=sys.stderr)
_theirs()
