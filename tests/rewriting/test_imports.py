"""A new import reads as if the file's author had put it there."""

from __future__ import annotations

import pytest

from tests.rewriting.tools import block, edit, from_text, made, refused, statement


def with_torch(header: str, path: str = "package/module.py", body: str = "") -> str:
    """The header of a module after an edit below it asked for `import torch`."""
    use = body or "\n\ndef f(x):\n    use\n"
    source = from_text(block(header) + use, path)
    text = made(source, edit(statement(source, "use"), "used()", imports=("torch",)))
    assert text.endswith(use.replace("use\n", "used()\n"))
    return text.removesuffix(use.replace("use\n", "used()\n"))


# Where it goes


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        pytest.param(
            "import os\n\nimport numpy as np\nfrom torch import nn\n\nfrom .a import b\n",
            "import os\n\nimport numpy as np\nimport torch\nfrom torch import nn\n\nfrom .a import b\n",
            id="after the imports that sort before it",
        ),
        pytest.param(
            "import os\n\nimport numpy as np\nimport triton\nfrom torch import nn\n",
            "import os\n\nimport numpy as np\nimport torch\nimport triton\nfrom torch import nn\n",
            id="before the imports that sort after it",
        ),
        pytest.param(
            "import os\n\nfrom numpy import pi\nfrom torch import nn\n",
            "import os\n\nimport torch\nfrom numpy import pi\nfrom torch import nn\n",
            id="before all from-imports if there is no other",
        ),
        pytest.param(
            "import os\n\nfrom einops import rearrange\nimport numpy as np\nfrom torch import nn\nimport triton\n",
            "import os\n\nfrom einops import rearrange\nimport numpy as np\nimport torch\nfrom torch import nn\n"
            "import triton\n",
            id="by name where the two kinds are mixed",
        ),
        pytest.param(
            "import torch.nn as nn\nimport numpy as np\nfrom einops import rearrange\n",
            "import torch.nn as nn\nimport numpy as np\nimport torch\nfrom einops import rearrange\n",
            id="after the others where nothing is sorted",
        ),
        pytest.param(
            "import os\nfrom typing import Any\n\n\nX = 1\n",
            "import os\nfrom typing import Any\n\nimport torch\n\n\nX = 1\n",
            id="in a section of its own after the standard library",
        ),
        pytest.param(
            "from __future__ import annotations\nfrom .a import b\n",
            "from __future__ import annotations\n\nimport torch\n\nfrom .a import b\n",
            id="after the future and before the project's own",
        ),
        pytest.param(
            '"""Doc."""\n\n# ours\nfrom .a import b\n',
            '"""Doc."""\n\nimport torch\n\n# ours\nfrom .a import b\n',
            id="before the project's own and its comment",
        ),
        pytest.param('"""Doc."""\n', '"""Doc."""\n\nimport torch\n', id="after the docstring"),
        pytest.param('"""Doc\nmore."""; x = 1\n', '"""Doc\nmore."""; x = 1\n\nimport torch\n', id="after its line"),
        pytest.param(
            "#!/usr/bin/env python\n# Copyright\n\n# about x\nx = 1\n",
            "#!/usr/bin/env python\n# Copyright\n\nimport torch\n\n# about x\nx = 1\n",
            id="below the licence",
        ),
        pytest.param("# Copyright\nx = 1\n", "# Copyright\n\nimport torch\n\nx = 1\n", id="below a touching licence"),
        pytest.param("x = 1\n", "import torch\n\nx = 1\n", id="at the top of the file"),
        pytest.param(
            "import numpy as np  # arrays\nfrom torch import nn  # layers\n",
            "import numpy as np  # arrays\nimport torch\nfrom torch import nn  # layers\n",
            id="between comments",
        ),
        pytest.param(
            "from torch import (\n    nn,\n)\nfrom x import y\n",
            "import torch\nfrom torch import (\n    nn,\n)\nfrom x import y\n",
            id="before one of several lines",
        ),
    ],
)
def test_place(header: str, expected: str) -> None:
    assert with_torch(header) == expected


def test_the_projects_own_package_is_not_third_party() -> None:
    header = "import os\n\nfrom package.a import b\n"
    assert with_torch(header) == "import os\n\nimport torch\n\nfrom package.a import b\n"
    assert with_torch(header, "elsewhere/m.py") == "import os\n\nimport torch\nfrom package.a import b\n"


def test_the_newline_of_the_file_is_used() -> None:
    source = from_text("import os\r\nimport numpy\r\nuse\r\n")
    assert made(source, edit(statement(source, "use"), "b", imports=("torch",))) == (
        "import os\r\nimport numpy\r\nimport torch\r\nb\r\n"
    )


def test_imports_of_several_edits_are_added_once() -> None:
    source = from_text("import os\n\n\ndef f():\n    a\n    b\n")
    edits = [edit(statement(source, name), "c", imports=("torch", "torch.nn")) for name in "ab"]
    assert made(source, *edits) == ("import os\n\nimport torch\nimport torch.nn\n\n\ndef f():\n    c\n    c\n")


def test_a_file_of_one_function_gets_two_blank_lines_after_the_import() -> None:
    source = from_text("def f():\n    use")
    assert made(source, edit(statement(source, "use"), "b", imports=("torch",))) == (
        "import torch\n\n\ndef f():\n    b"
    )


# When there is nothing to add


@pytest.mark.parametrize(
    "header",
    [
        "import torch\n",
        "import os, torch\n",
        "import torch.nn\n",
        "import torch as torch\n",
        "if is_torch_available():\n    import torch\n",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import torch\n",
        "with quiet():\n    import torch\n",
    ],
)
def test_a_module_that_binds_the_name_is_left_alone(header: str) -> None:
    assert with_torch(header) == header


def test_an_import_in_the_function_serves_what_follows_it() -> None:
    body = "def f(x):\n    import torch\n    use\n"
    assert with_torch("import os\n", body=body) == "import os\n"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("import torch as th\n", "import torch\nimport torch as th\n"),
        ("import torch.nn as nn\n", "import torch\nimport torch.nn as nn\n"),
        ("from torch import nn\n", "import torch\nfrom torch import nn\n"),
        (
            "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import torch\n",
            "from typing import TYPE_CHECKING\n\nimport torch\n\nif TYPE_CHECKING:\n    import torch\n",
        ),
    ],
)
def test_other_imports_of_the_package_do_not_bind_its_name(header: str, expected: str) -> None:
    assert with_torch(header) == expected


def test_where_the_package_is_optional_the_import_is_too() -> None:
    header = "import os\n\nif is_torch_available():\n    from .a import b\n    from torch import nn\n"
    assert with_torch(header) == (
        "import os\n\nif is_torch_available():\n    from .a import b\n    import torch\n    from torch import nn\n"
    )


# When the name is taken


@pytest.mark.parametrize("header", ["torch = 1", "from a import torch", "def torch(): pass", "import a as torch"])
def test_a_module_that_means_something_else_by_the_name_is_left_alone(header: str) -> None:
    source = from_text(f"{header}\n\ndef f():\n    use\n")
    reason = refused(source, edit(statement(source, "use"), "b", imports=("torch",)))
    assert reason == "`torch` is bound to something other than the module at line 1"


@pytest.mark.parametrize(
    "function",
    [
        "def f(torch):\n    use\n",
        "def f():\n    use\n    import torch\n",
        "def f():\n    for torch in x:\n        use\n",
        "def f(torch):\n    def g():\n        use\n",
        "class A:\n    @property\n    def f(self, *torch):\n        use\n",
        "def f():\n    use\n    if TYPE_CHECKING:\n        import torch\n",
        "def f():\n    use\n    [(torch := a) for a in b]\n",
        "def f():\n    use\n    match a:\n        case {**torch}: pass\n",
        "def f():\n    use\n    try: pass\n    except E as torch: pass\n",
    ],
)
def test_a_function_with_a_local_of_that_name_is_left_alone(function: str) -> None:
    source = from_text(f"import torch\n{function}")
    reason = refused(source, edit(statement(source, "use"), "b", imports=("torch",)))
    assert reason == "`f` has a local name `torch`"


@pytest.mark.parametrize(
    "function",
    [
        "def f():\n    global torch\n    use\n",
        "def g(torch): pass\ndef f():\n    use\n",
        "class A:\n    torch = 1\n    def f(self):\n        use\n",
        "def f():\n    [torch for torch in x]\n    use\n",
    ],
)
def test_names_of_other_scopes_do_not_matter(function: str) -> None:
    source = from_text(f"import torch\n{function}")
    made(source, edit(statement(source, "use"), "b", imports=("torch",)))
