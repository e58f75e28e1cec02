"""The examples of every rule's page, as they stand and moved into hostile company."""

from graphmend_codemod.rules.framework.examples import Declined, Example
from graphmend_codemod.rules.framework.registry import all_rules
from tests.adversarial.case import Group
from tests.tools.fixes import embedded

pages = Group("pages")
refused = Group("pages, declined")

_VARIANTS = ("empty", "one nan", "float16", "float64", "int64", "uint8", "strided")

for _rule in all_rules():
    for _number, _example in enumerate(_rule.examples, 1):
        if isinstance(_example, Example) and _example.inputs:
            _plain = tuple(f"({each.strip().rstrip(',')},)" for each in _example.inputs)
            _text = embedded(_example.before, _example.setup)
            pages.whole(f"{_rule.code} {_number}", _text, inputs=_plain)
            pages.whole(
                f"{_rule.code} {_number}, other inputs",
                _text,
                inputs=(*_plain, *(f"{variant}@ {_plain[0]}" for variant in _VARIANTS)),
                training=(False,),
            )
            pages.whole(
                f"{_rule.code} {_number}, under a subclass that keeps everything",
                _text,
                files={
                    "child.py": """
                    import model


                    class Child(model.Model):
                        def __getattr__(self, name):
                            found = super().__getattr__(name)
                            self.__dict__.setdefault("read", []).append(name)
                            return found
                    """
                },
                make="child.Child()",
                inputs=_plain,
                training=(False,),
                varied=False,
            )
            if "self.forward" not in _text and "class Model(" in _text:
                pages.whole(
                    f"{_rule.code} {_number}, under a caller that catches",
                    _text,
                    files={
                        "outer.py": """
                        import contextlib
                        import model
                        import torch.nn as nn


                        class Outer(nn.Module):
                            def __init__(self):
                                super().__init__()
                                self.inner = model.Model()

                            def forward(self, *args):
                                with contextlib.suppress(Exception):
                                    return self.inner(*args)
                                return None
                        """
                    },
                    make="outer.Outer()",
                    inputs=(*_plain, *(f"{variant}@ {_plain[0]}" for variant in ("empty", "one nan", "negative"))),
                    varied=False,
                )
        if isinstance(_example, Declined):
            _inputs = next((e.inputs for e in _rule.examples if isinstance(e, Example) and e.inputs), ())
            if _inputs:
                refused.whole(
                    f"{_rule.code} {_number}",
                    embedded(_example.source, _example.setup),
                    inputs=tuple(f"({each.strip().rstrip(',')},)" for each in _inputs),
                )
