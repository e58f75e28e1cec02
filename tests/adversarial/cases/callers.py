"""Callers in another file that catch what is raised."""

from tests.adversarial.case import IMPORTS, TWO, Group

callers = Group("callers that catch")
_GUARDS = {
    "raise": "if (x < 0).any():\n    raise ValueError('negative')\nreturn x * 2.0",
    "assert": "assert (x >= 0).all(), 'negative'\nreturn x * 2.0",
    "not allclose": "if not torch.allclose(x, x.abs()):\n    raise ValueError('negative')\nreturn x * 2.0",
    "equal": "if not torch.equal(x, x.abs()):\n    raise ValueError('negative')\nreturn x * 2.0",
}
_CATCHES = {
    "try in another file": "try:\n            return self.inner(x)\n        except (ValueError, AssertionError):\n            return x - 1.0",
    "bare except": "try:\n            return self.inner(x)\n        except:\n            return x - 1.0",
    "suppress": "with contextlib.suppress(ValueError, AssertionError):\n            return self.inner(x)\n        return x - 1.0",
    "own context manager": "with Swallow():\n            return self.inner(x)\n        return x - 1.0",
    "generator context manager": "with swallow():\n            return self.inner(x)\n        return x - 1.0",
    "exit stack": "with contextlib.ExitStack() as stack:\n            stack.enter_context(contextlib.suppress(Exception))\n            return self.inner(x)\n        return x - 1.0",
    "finally with return": "try:\n            r = self.inner(x)\n        finally:\n            return x - 1.0",
    "decorator that catches": "return caught(self.inner)(x)",
    "else of try": "try:\n            r = self.inner(x)\n        except Exception as e:\n            return x - len(str(e))\n        else:\n            return r",
}
for guard, body in _GUARDS.items():
    for name, catch in _CATCHES.items():
        callers.add(
            f"{guard}, {name}",
            body,
            files={
                "outer.py": f"""
{IMPORTS}
import model


class Swallow:
    def __enter__(self):
        return self

    def __exit__(self, *found):
        return True


@contextlib.contextmanager
def swallow():
    try:
        yield
    except Exception:
        pass


def caught(function):
    def inner(*args):
        try:
            return function(*args)
        except Exception:
            return args[0] - 1.0
    return inner


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model.Model()

    def forward(self, x):
        {catch}
"""
            },
            make="outer.Outer()",
            inputs=TWO,
            varied=False,
        )
callers.add(
    "function called under a catch in the same file",
    """
    try:
        return checked(x)
    except ValueError:
        return x - 1.0
    """,
    top="""
    def checked(x: torch.Tensor):
        if (x < 0).any():
            raise ValueError("negative")
        return x * 2.0
    """,
)
callers.add(
    "method called two deep",
    """
    try:
        return self.outer(x)
    except Exception:
        return x - 1.0
    """,
    methods="""
    def outer(self, x):
        return self.inner(x)

    def inner(self, x: torch.Tensor):
        if (x < 0).any():
            raise ValueError("negative")
        return x * 2.0
    """,
)
callers.add(
    "function passed by name to one that catches",
    """
    return attempt(self.inner, x)
    """,
    methods="""
    def inner(self, x: torch.Tensor):
        if (x < 0).any():
            raise ValueError("negative")
        return x * 2.0
    """,
    top="""
    def attempt(function, *args):
        try:
            return function(*args)
        except Exception:
            return args[0] - 1.0
    """,
)
callers.add(
    "state written before the raise",
    """
    self.calls = self.calls + 1
    if (x < 0).any():
        raise ValueError("negative")
    self.good = self.good + 1
    return x * 2.0
    """,
    init="self.calls = 0\nself.good = 0",
)
callers.add(
    "guard in a loop that breaks",
    """
    for row in x:
        if (row < 0).any():
            raise ValueError("negative")
        x = x + row
    return x
    """,
)
