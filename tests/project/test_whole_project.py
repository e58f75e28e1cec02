"""What only all files of a project tell: heirs, who writes an attribute, who uses a class."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_codemod.project.index.facts import NeedsProject
from graphmend_codemod.project.summary.records import Write
from tests.project.tools import index_of, write


def test_heirs_are_classes_of_any_file_at_any_depth(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/part.py": "class Part: ...\nclass Near(Part): ...",
        "pkg/far.py": "from pkg import part as p\nclass Far(p.Near): ...",
        "other.py": "class Part: ...\nclass Stranger(Part): ...",
    }
    index = index_of(write(tmp_path, files))
    with pytest.raises(NeedsProject):
        index.heirs("pkg.part.Part")
    index.has_every_file(files)
    assert index.heirs("pkg.part.Part") == ("pkg.far.Far", "pkg.part.Near")


@pytest.mark.parametrize(
    ("text", "write_"),
    [
        ("m.norm = 1", Write("norm", "m", "assigned")),
        ("def f(m):\n    m.norm = 1", Write("norm", "m", "assigned")),
        ("def f(m):\n    if m:\n        m.a.norm, x = 1, 2", Write("norm", "m.a", "assigned")),
        ("def f(m):\n    m.a.norm, x = g()", Write("norm", "m.a", "assigned")),
        ("def f(m):\n    m[0].norm = 1", Write("norm", "", "assigned")),
        ("setattr(m, 'norm', 1)", Write("norm", "m", "assigned")),
        ("def f(m):\n    m.a.register_buffer('norm', 1)", Write("norm", "m.a", "assigned")),
        ("def f(m):\n    m.a.set_submodule('b.norm', 1)", Write("norm", "m.a", "assigned")),
        ("def f(m):\n    m.norm += 1", Write("norm", "m", "assigned")),
        ("def f(m):\n    m.norm[0] += 1", Write("norm", "m", "changed")),
        ("def f(m):\n    m.norm[0] = 1", Write("norm", "m", "changed")),
        ("def f(m):\n    m.norm.fill_(1)", Write("norm", "m", "changed")),
        ("def f(m):\n    m.norm.data.fill_(1)", Write("norm", "m", "changed")),
        ("def f(m):\n    nn.init.zeros_(m.norm)", Write("norm", "m", "changed")),
        ("def f(m, x):\n    g(x, out=m.norm)", Write("norm", "m", "changed")),
        ("class M:\n    def __init__(self):\n        self.norm.zero_()", Write("norm", "self", "changed")),
        (
            "class M(B):\n    def __init__(self):\n        self.norm.zero_()\n    def forward(self): ...",
            Write("norm", "self", "changed"),
        ),
        (
            "class M(B):\n    def __init__(self):\n        self.a.norm = 1\n    def forward(self): ...",
            Write("norm", "self.a", "assigned"),
        ),
        ("def f(m):\n    m.part.register_forward_pre_hook(g)", Write("part", "m", "hooked")),
        ("part.register_forward_hook(g)", Write("part", "", "hooked")),
    ],
)
def test_what_a_module_does_to_attributes_of_others_is_known(tmp_path: Path, text: str, write_: Write) -> None:
    index = index_of(write(tmp_path, {"a.py": text, "b.py": "def g(self):\n    return self.norm.sum()"}))
    index.has_every_file(["a.py", "b.py"])
    assert index.writers(write_.name) == (("a.py", write_),)


@pytest.mark.parametrize("text", ["self.norm = 1", "self.register_buffer('norm', 1)", "norm = 1; norm.add_(1)"])
def test_what_a_method_gives_its_own_instance_is_an_attribute_of_the_class(tmp_path: Path, text: str) -> None:
    index = index_of(write(tmp_path, {"a.py": f"class M:\n    def f(self):\n        {text}"}))
    index.has_every_file(["a.py"])
    assert index.writers("norm") == ()


def test_users_of_a_class_name_it_in_another_module(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from .part import Part",
        "pkg/part.py": "class Part: ...\ndef make():\n    return Part()",
        "pkg/direct.py": "from .part import Part as P",
        "pkg/exported.py": "from pkg import Part",
        "pkg/inside.py": "def f():\n    from pkg.part import Part\n    return Part()",
        "pkg/dotted.py": "from pkg import part\ndef f():\n    return part.Part()",
        "pkg/based.py": "import pkg.part\nclass Sub(pkg.part.Part): ...",
        "pkg/other.py": "class Part: ...\nPart()",
    }
    index = index_of(write(tmp_path, files))
    index.has_every_file(files)
    named = ("based", "direct", "dotted", "exported", "inside")
    assert index.users("pkg.part.Part") == tuple(f"pkg/{name}.py" for name in named)
