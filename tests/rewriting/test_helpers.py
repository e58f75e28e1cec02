"""Definitions that edits share: where they stand, what they are called, and that there is one of each."""

from __future__ import annotations

import pytest

from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.rewriting import apply
from tests.rewriting.tools import block, edit, from_text, made, refused, statement

LOG = Helper(
    "_log_once",
    '@torch.compiler.assume_constant_result\ndef _log_once():\n    if quiet:\n        return\n    logger.info("x")',
    after=("logger",),
)
PLAIN = Helper("_plain", "def _plain():\n    pass")


def using(source: SourceFile, helper: Helper, target: str = "use") -> Edit:
    return edit(statement(source, target), f"{helper.name}()", helpers=(helper,))


def with_helper(text: str, helper: Helper = PLAIN) -> str:
    source = from_text(block(text))
    return made(source, using(source, helper))


# Where it stands


def test_it_follows_the_imports_and_what_it_relies_on() -> None:
    text = """
    import torch

    from .a import b

    logger = get_logger()
    LIMIT = 1

    # The model.
    class Model:
        def forward(self):
            use
    """
    assert with_helper(text, LOG) == block(
        """
        import torch

        from .a import b

        logger = get_logger()


        @torch.compiler.assume_constant_result
        def _log_once():
            if quiet:
                return
            logger.info("x")


        LIMIT = 1

        # The model.
        class Model:
            def forward(self):
                _log_once()
        """
    )


def test_it_takes_newline_and_indentation_of_the_file() -> None:
    source = from_text("import torch\r\nlogger = 1\r\n\r\n\r\ndef f():\r\n\tuse\r\n")
    assert made(source, using(source, LOG)) == (
        "import torch\r\nlogger = 1\r\n\r\n\r\n@torch.compiler.assume_constant_result\r\ndef _log_once():\r\n"
        '\tif quiet:\r\n\t\treturn\r\n\tlogger.info("x")\r\n\r\n\r\ndef f():\r\n\t_log_once()\r\n'
    )


@pytest.mark.parametrize(
    ("text", "before_it"),
    [
        ("import a\nif b:\n    import c\nX = 1\ndef f():\n    use\n", "import a\nif b:\n    import c\n\n\n"),
        (
            "import a\ntry:\n    import c\nexcept ImportError:\n    def c(): pass\nX = 1\ndef f():\n    use\n",
            "import a\ntry:\n    import c\nexcept ImportError:\n    def c(): pass\n\n\n",
        ),
        ('"""Doc."""\ndef f():\n    use\n', '"""Doc."""\n\n\n'),
        ("# Copyright\n\n# f does it\ndef f():\n    use\n", "# Copyright\n\n\n"),
        ("@d\ndef f():\n    use\n", ""),
        ("import a\ndef f():\n    use\nimport b\n", "import a\n\n\n"),
        ("if TYPE_CHECKING:\n    import a\ndef f():\n    use\n", "if TYPE_CHECKING:\n    import a\n\n\n"),
    ],
)
def test_place(text: str, before_it: str) -> None:
    assert with_helper(text).startswith(f"{before_it}def _plain():\n    pass\n\n\n")


def test_what_it_relies_on_may_come_late() -> None:
    text = "import torch\ndef f():\n    use\nlogger = 1"
    assert with_helper(text, LOG).startswith("import torch\ndef f():\n    _log_once()\nlogger = 1\n\n\n@torch")
    assert not with_helper(text, LOG).endswith("\n")


def test_a_new_import_comes_before_it() -> None:
    source = from_text('"""Doc."""\n\nlogger = 1\n\n\ndef f():\n    use\n')
    text = made(source, edit(statement(source, "use"), "_log_once()", imports=("torch",), helpers=(LOG,)))
    assert text.startswith('"""Doc."""\n\nimport torch\n\nlogger = 1\n\n\n@torch.compiler')


@pytest.mark.parametrize("late", ["import torch\n", "import os\n"])
def test_it_never_comes_before_the_import_that_its_decorator_needs(late: str) -> None:
    source = from_text(f"def early(): pass\n{late}def f():\n    use\n")
    text = made(source, edit(statement(source, "use"), "_log_once()", imports=("torch",), helpers=(LOG,)))
    assert text.index("import torch\n") < text.index("@torch") < text.index("def f")


def test_import_and_helper_at_one_place_keep_their_blank_lines() -> None:
    source = from_text('"""Doc."""\nclass A:\n    def f(self):\n        use\n')
    text = made(source, edit(statement(source, "use"), "_plain()", imports=("torch",), helpers=(PLAIN,)))
    assert text.startswith('"""Doc."""\n\nimport torch\n\n\ndef _plain():\n    pass\n\n\nclass A:\n')


def test_two_helpers_stand_one_after_the_other() -> None:
    source = from_text("import a\n\n\ndef f():\n    one\n    two\n")
    other = Helper("_other", "def _other():\n    pass")
    assert made(source, using(source, PLAIN, "one"), using(source, other, "two")) == (
        "import a\n\n\ndef _plain():\n    pass\n\n\ndef _other():\n    pass\n\n\ndef f():\n    _plain()\n    _other()\n"
    )


# One of each


def test_edits_share_a_helper() -> None:
    source = from_text("import a\ndef f():\n    one\n    two\n")
    assert made(source, using(source, PLAIN, "one"), using(source, PLAIN, "two")).count("def _plain") == 1


def test_a_later_run_uses_the_helper_that_is_there() -> None:
    first = with_helper("import a\ndef f():\n    use\n    later\n")
    source = from_text(first)
    assert made(source, using(source, PLAIN, "later")) == first.replace("later", "_plain()")


def test_the_same_helper_in_a_file_with_tabs_is_the_same() -> None:
    source = from_text("def _plain():\n\tpass\ndef f():\n\tuse\n")
    assert made(source, using(source, PLAIN)) == source.text.replace("use", "_plain()")


# Its name


@pytest.mark.parametrize(
    "taken",
    ["_plain = 1", "def _plain():\n    return 1", "if a:\n    def _plain():\n        pass", "from a import _plain"],
)
def test_a_name_that_is_taken_gets_a_number(taken: str) -> None:
    text = with_helper(f"{taken}\ndef f():\n    use\n")
    assert "def _plain_2():\n    pass" in text
    assert "    _plain_2()\n" in text


def test_a_name_that_a_function_uses_for_itself_is_taken_too() -> None:
    assert "    _plain_2()\n" in with_helper("def f(_plain):\n    use\n")


def test_the_number_grows_until_the_name_is_free_and_is_found_again() -> None:
    text = with_helper("_plain = 1\n_plain_2 = 2\ndef f():\n    use\n    later\n")
    assert "_plain_3()" in text
    source = from_text(text)
    assert made(source, using(source, PLAIN, "later")) == text.replace("later", "_plain_3()")


def test_two_helpers_of_one_name_are_kept_apart() -> None:
    source = from_text("def f():\n    one\n    two\n")
    rival = Helper("_plain", "def _plain():\n    return 2")
    text = made(source, using(source, PLAIN, "one"), using(source, rival, "two"))
    assert "    _plain()\n    _plain_2()\n" in text
    assert "def _plain_2():\n    return 2\n" in text


def test_only_whole_words_are_renamed() -> None:
    source = from_text("_plain = 1\ndef f():\n    use\n")
    text = made(source, edit(statement(source, "use"), "_plain(_plainer, a._plain, x_plain)", helpers=(PLAIN,)))
    assert "    _plain_2(_plainer, a._plain, x_plain)\n" in text


# When it cannot stand there


def test_a_module_that_works_without_torch_goes_on_doing_so() -> None:
    source = from_text("logger = 1\nif is_torch_available():\n    import torch\ndef f(x):\n    use\n")
    assert refused(source, using(source, LOG)) == (
        "its helper needs `torch`, which the module imports only under a condition"
    )
    optional = from_text("logger = 1\nif is_torch_available():\n    from torch import nn\ndef f(x):\n    use\n")
    asked = edit(statement(optional, "use"), "_log_once()", imports=("torch",), helpers=(LOG,))
    assert "only under a condition" in refused(optional, asked)


def test_a_class_that_needs_torch_anyway_may_have_a_helper_that_does() -> None:
    text = "logger = 1\ntry:\n    import torch\n    from torch import nn\nexcept ImportError:\n    pass\n"
    assert "def _log_once" in with_helper(f"{text}class A(nn.Module):\n    def f(x):\n        use\n", LOG)


@pytest.mark.parametrize(
    "source", ["def other():\n    pass", "_plain = 1", "def _plain(:", "def _plain(): pass\nx = 1"]
)
def test_a_helper_that_is_not_one_definition_of_its_name_is_refused(source: str) -> None:
    file = from_text("def f():\n    use\n")
    assert "not one definition" in refused(file, using(file, Helper("_plain", source)))


def test_a_skipped_edit_leaves_no_helper_and_no_import_behind() -> None:
    source = from_text("def f():\n    use\n    b\n")
    bad = edit(statement(source, "use"), "_plain(", imports=("torch",), helpers=(PLAIN,))
    applied = apply(source, [bad, edit(statement(source, "b"), "c")])
    assert applied.text == "def f():\n    use\n    c\n"
