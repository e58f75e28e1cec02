"""Checks, messages and tests of tensors in every place where they may stand."""

from tests.adversarial.case import Group

_TWO = (
    "torch.tensor([[1.0, 2.0, 3.0], [4.0, 0.5, 1.0]])",
    "torch.tensor([[-1.0, 2.0, -3.0], [-4.0, -0.5, 1.0]])",
    "torch.zeros(2, 3)",
)

tests = Group("tests of tensors")
for name, test in {
    "equal": "torch.equal(x, x.abs())",
    "equal, method": "x.equal(x.abs())",
    "not equal of another shape": "not torch.equal(x, x[:1])",
    "equal of another dtype": "torch.equal(x, x.double())",
    "equal of nan": "torch.equal(x, x * 1.0)",
    "allclose": "torch.allclose(x, x.abs())",
    "allclose, method with tolerances": "x.allclose(x.abs(), rtol=0.0, atol=4.0)",
    "allclose with nan": "torch.allclose(x, x, equal_nan=True)",
    "allclose of broadcast": "torch.allclose(x, x[:1])",
    "is_nonzero": "torch.is_nonzero(x.sum())",
    "is_nonzero, method": "x.sum().is_nonzero()",
    "is_nonzero of an element": "x[0, 0].is_nonzero()",
    "bool": "bool(x.sum() > 0)",
    "item": "(x.sum() > 0).item()",
    "number": "x.sum().item() > 0",
    "float": "float(x.sum()) > 0",
    "int": "int(x[0, 0])",
    "len of nonzero": "len(x.nonzero()) > 3",
    "numel of a selection": "x[x > 0].numel() > 3",
    "in": "1.0 in x",
    "not in": "0.5 not in x",
    "chained comparison": "0 < x.sum() < 10",
    "and of two": "x.sum() > 0 and x.min() > -1",
    "or with a Python flag": "self.training or x.sum() > 0",
    "or behind the tensor": "x.sum() > 0 or self.training",
    "division guarded by and": "x.sum() != 0 and (1 / x.sum()) > 0.1",
    "index guarded by and": "x.shape[0] > 1 and x[1].sum() > 0",
    "index guarded by a tensor": "x.sum() > 0 and x[5].sum() > 0",
    "walrus": "(s := x.sum()) > 0",
    "ternary as a test": "(x.sum() > 0 if self.training else x.min() < 0)",
    "any of a generator": "any(row.sum() > 4 for row in x)",
    "all of a list": "all([row.sum() > 0 for row in x])",
    "max of Python": "max(x[0, 0], x[0, 1]) > 1",
    "sum of Python": "sum(x[0]) > 1",
    "lambda": "(lambda t: t.sum() > 0)(x)",
    "is True": "(x.sum() > 0) is True",
    "== True": "(x.sum() > 0) == True",
    "not": "not x.sum()",
    "double not": "not not x.sum()",
    "the tensor itself": "x.sum()",
    "an element": "x[0, 0]",
    "complex modulus": "abs(x.sum())",
    "method of a result": "x.gt(0).all()",
    "nan of itself": "(x != x).any()",
    "isfinite": "not torch.isfinite(x).all()",
    "isnan of a sum": "torch.isnan(x.sum())",
    "isinf, item": "torch.isinf(x).any().item()",
    "argmax": "x.sum(0).argmax() == 2",
    "count_nonzero": "torch.count_nonzero(x) > 3",
    "unique": "x.unique().numel() > 4",
    "tolist": "x.sum().tolist() > 0",
    "numpy": "x.detach().numpy().sum() > 0",
    "norm": "x.norm() > 3",
    "string": "str(x.sum().item() > 0) == 'True'",
    "hash of a set": "x.sum().item() in {6.5, 11.5}",
}.items():
    for form, body in {
        "assignment": f"y = x * 1.0\nif {test}:\n    y = y + 1.0\nelse:\n    y = y - 1.0\nreturn y",
        "return": f"if {test}:\n    return x + 1.0\nreturn x - 1.0",
        "guard": f"if {test}:\n    raise ValueError('found ' + str(tuple(x.shape)))\nreturn x - 1.0",
        "ternary": f"return x + 1.0 if {test} else x.sqrt()",
        "assertion": f"assert {test}, 'broken'\nreturn x.log()",
    }.items():
        tests.add(f"{name}, {form}", body, varied=form in {"assignment", "guard"})

shapes = Group("branches of other shapes")
for name, body in {
    "three arms": "if x.sum() > 5:\n    y = x.sqrt()\nelif x.sum() > 0:\n    y = x / x\nelif x.min() < -3:\n    y = x.log()\nelse:\n    y = x * 2.0\nreturn y",
    "three returns": "if x.sum() > 5:\n    return x.sqrt()\nelif x.sum() > 0:\n    return x / x\nelif x.min() < -3:\n    return x.log()\nreturn x * 2.0",
    "arms without else": "y = x\nif x.sum() > 5:\n    y = x.sqrt()\nelif x.sum() > 0:\n    y = x / x\nreturn y",
    "nested": "y = x\nif x.sum() > 0:\n    if x.min() < 0.6:\n        y = x.sqrt()\n    else:\n        y = x * 3.0\nreturn y",
    "nested returns": "if x.sum() > 0:\n    if x.min() < 0.6:\n        return x.rsqrt()\n    return x * 3.0\nreturn x",
    "early return twice": "if x.sum() > 5:\n    return x.sqrt()\nif x.sum() < -3:\n    return x.exp()\nreturn x / x",
    "two names": "a, b = x, x\nif x.sum() > 0:\n    a, b = b.sqrt(), a / a\nreturn a, b",
    "swap": "a, b = x, x * 2.0\nif x.sum() > 0:\n    a, b = b, a\nreturn a, b",
    "chained targets": "a = b = x\nif x.sum() > 0:\n    a = b = x * 2.0\nreturn a, b, a is b",
    "identity asked": "a = x\nif x.sum() > 0:\n    a = x * 2.0\nreturn a, a is x",
    "identity decides": "a = x * 1.0\nb = a\nif x.sum() > 0:\n    a = a + 0.0\nif a is b:\n    return x\nreturn x + 1.0",
    "name deleted": "a = x * 2.0\nif x.sum() > 0:\n    a = a + 1.0\nb = a\ndel a\nreturn b",
    "name bound only in one arm": "if x.sum() > 0:\n    y = x * 2.0\nreturn y",
    "name bound only in one arm, and caught": "if x.sum() > 0:\n    y = x * 2.0\ntry:\n    return y\nexcept UnboundLocalError:\n    return x",
    "locals": "y = x\nif x.sum() > 0:\n    y = x * 2.0\nreturn sorted(locals())",
    "vars after": "y = x\nif x.sum() > 0:\n    z = x * 2.0\n    y = z + 1.0\nreturn y, 'z' in locals()",
    "nonlocal": "y = x\n\ndef inner():\n    nonlocal y\n    if y.sum() > 0:\n        y = y * 2.0\n    return y\n\nreturn inner(), y",
    "global": "global TOTAL\nif x.sum() > 0:\n    TOTAL = x * 2.0\nelse:\n    TOTAL = x\nreturn TOTAL",
    "lambda captures": "y = x\nf = lambda: y\nif x.sum() > 0:\n    y = y * 2.0\nreturn f()",
    "comprehension": "return [r * 2.0 if r.sum() > 0 else r.sqrt() for r in x]",
    "generator": "return sum((r * 2.0 if r.sum() > 0 else r for r in x), torch.zeros(3))",
    "in a loop": "for i in range(3):\n    if x.sum() > i:\n        x = x - i\nreturn x",
    "break": "for i in range(3):\n    if x.sum() > i:\n        break\n    x = x - 1.0\nreturn x, i",
    "continue": "y = x\nfor row in x:\n    if row.sum() < 0:\n        continue\n    y = y + row.sqrt()\nreturn y",
    "for else": "for row in x:\n    if row.sum() < 0:\n        break\nelse:\n    return x.sqrt()\nreturn x",
    "while with a number": "n = 0\nwhile x.sum() > 1 and n < 3:\n    x = x / 2\n    n += 1\nreturn x, n",
    "while True": "n = 0\nwhile True:\n    n += 1\n    if x.abs().sum() < 4 or n > 3:\n        return x\n    x = x / 2",
    "in with": "with torch.no_grad():\n    if x.sum() > 0:\n        return x * 2.0\nreturn x",
    "in try": "try:\n    if x.sum() > 0:\n        x = x * 2.0\n    else:\n        x = x @ x\nexcept RuntimeError:\n    x = x - 1.0\nreturn x",
    "in finally": "y = x\ntry:\n    y = y + 1.0\nfinally:\n    if x.sum() > 0:\n        y = y * 2.0\nreturn y",
    "arm raises by shape": "if x.sum() > 0:\n    x = x @ x.T @ x\nelse:\n    x = x.view(7)\nreturn x",
    "arm indexes out of range": "if x.sum() > 0:\n    return x[1]\nreturn x[5]",
    "arm of other dtype": "if x.sum() > 0:\n    return x.double()\nreturn x",
    "arm of other device-free dtype": "if x.sum() > 0:\n    return x.long()\nreturn x.bool()",
    "arm of other layout": "if x.sum() > 0:\n    return x.t().contiguous().t()\nreturn x",
    "strides asked": "y = x\nif x.sum() > 0:\n    y = x.t().contiguous().t()\nreturn y, y.stride(), y.is_contiguous()",
    "strided value": "y = x.t()\nif x.sum() > 0:\n    y = y * 2.0\nreturn y, y.stride()",
    "storage asked": "y = x * 1.0\nz = y\nif x.sum() > 0:\n    y = y + 1.0\nreturn y.data_ptr() == z.data_ptr()",
    "version asked": "y = x * 1.0\nif x.sum() > 0:\n    y = y + 1.0\nreturn y, y._version",
    "tuple of results": "if x.sum() > 0:\n    return x.sqrt(), x * 2.0\nreturn x, x",
    "dict of results": "if x.sum() > 0:\n    return {'a': x.sqrt()}\nreturn {'a': x}",
    "None in one": "if x.sum() > 0:\n    return None\nreturn x",
    "number in one": "if x.sum() > 0:\n    return 0.0\nreturn x.sum()",
    "bool in one": "if x.sum() > 0:\n    return True\nreturn False",
    "string in one": "if x.sum() > 0:\n    return 'more'\nreturn 'less'",
    "the same in both": "if x.sum() > 0:\n    y = x\nelse:\n    y = x\nreturn y, y is x",
    "pass": "if x.sum() > 0:\n    pass\nelse:\n    x = x.sqrt()\nreturn x",
    "ellipsis and docstring": "'''What it does.'''\nif x.sum() > 0:\n    ...\nelse:\n    x = x - 1.0\nreturn x",
    "comment in arms": "if x.sum() > 0:  # more\n    # twice\n    x = x * 2.0  # done\n# otherwise\nelse:\n    x = x.sqrt()\nreturn x",
    "one line": "y = x\nif x.sum() > 0: y = x.sqrt()\nreturn y",
    "semicolons": "y = x; z = x\nif x.sum() > 0: y = x.sqrt(); z = x / x\nreturn y, z",
    "annotated target": "y: torch.Tensor = x\nif x.sum() > 0:\n    y: torch.Tensor = x.sqrt()\nreturn y",
    "starred target": "a, *b = x, x, x\nif x.sum() > 0:\n    a, *b = b\nreturn a, b",
    "subscript target": "y = [x, x]\nif x.sum() > 0:\n    y[0] = x.sqrt()\nreturn y",
    "attribute target": "self.last = x\nif x.sum() > 0:\n    self.last = x.sqrt()\nreturn self.last",
    "element of a tensor": "y = x * 1.0\nif x.sum() > 0:\n    y[0] = 0.0\nreturn y",
    "augmented": "y = x * 1.0\nif x.sum() > 0:\n    y *= 2.0\nelse:\n    y -= 1.0\nreturn y",
    "augmented with another dtype": "y = x * 1.0\nif x.sum() > 0:\n    y += x.double()\nreturn y",
    "matmul augmented": "y = x * 1.0\nif x.sum() > 0:\n    y @= torch.eye(3)\nreturn y",
    "list append": "found = []\nfor row in x:\n    if row.sum() > 0:\n        found.append(row)\nreturn found",
    "dict write": "d = {}\nif x.sum() > 0:\n    d['a'] = x\nreturn d",
    "import in an arm": "if x.sum() > 0:\n    import math as m\n    x = x * m.pi\nreturn x",
    "random in an arm": "if x.sum() > 0:\n    x = x + torch.rand(3)\nreturn x",
    "dropout in an arm": "if x.sum() > 0:\n    x = F.dropout(x, 0.5, self.training)\nreturn x",
    "module in training state": "if x.sum() > 0:\n    x = self.norm(x)\nreturn x",
    "match on a test": "match bool(x.sum() > 0):\n    case True:\n        return x.sqrt()\n    case False:\n        return x",
    "match with a guard": "match x:\n    case t if t.sum() > 0:\n        return t.sqrt()\n    case _:\n        return x",
    "arm with an empty product": "if x.numel() == 0 or x.max() > 3:\n    return x * 2.0\nreturn x",
    "max of nothing": "y = x\nif x.shape[0] > 0:\n    if x.max() > 3:\n        y = x / x.max()\nreturn y",
    "yield": "def rows():\n    for row in x:\n        if row.sum() > 0:\n            yield row\nreturn list(rows())",
    "async": "async def f():\n    if x.sum() > 0:\n        return x\n    return x + 1\n\ntry:\n    f().send(None)\nexcept StopIteration as e:\n    return e.value",
    "recursion": "if x.sum() > 4:\n    return self(x / 2)\nreturn x",
    "super": "if x.sum() > 0:\n    return super().extra_repr() and x or x.sqrt()\nreturn x",
    "select of parameters": "w = self.norm.weight\nif x.sum() > 0:\n    w = self.norm.bias\nreturn w, w is self.norm.bias",
    "data of parameters": "w = self.norm.weight\nif x.sum() > 0:\n    w = self.norm.bias\nreturn x * w",
    "both arms nan": "if x.sum() > 0:\n    y = x.sqrt() / x.sqrt()\nelse:\n    y = (-x).sqrt() / (x + x.abs())\nreturn y",
    "nan inside the arm's inner value": "h = x.sqrt()\nif x.min() > 0:\n    y = h * 2.0\nelse:\n    y = x * 1.0\nreturn y",
    "derivative of a shared part": "h = x.abs().sqrt()\nif x.min() > 0:\n    y = 1.0 / h\nelse:\n    y = x + h\nreturn y",
    "clamp then log": "if x.min() > 0:\n    y = x.clamp(min=1e-12).log()\nelse:\n    y = x\nreturn y",
    "norm and gradient": "n = x.norm()\nif n > 1:\n    x = x / n\nreturn x",
    "norm with eps": "n = x.norm(dim=-1, keepdim=True)\nif (n > 1).any():\n    x = x / (n + 1e-6)\nreturn x",
    "acos of a cosine": "c = F.cosine_similarity(x, x.flip(0))\nif c.mean() > 0:\n    c = torch.acos(c)\nreturn c",
    "pow with zero base": "if x.sum() > 0:\n    y = x ** 0.3\nelse:\n    y = x ** 3\nreturn y",
    "where in an arm": "if x.sum() > 0:\n    y = torch.where(x > 0, x.sqrt(), x)\nelse:\n    y = x\nreturn y",
    "softplus and log": "if x.sum() > 0:\n    y = torch.log(torch.expm1(x))\nelse:\n    y = F.softplus(x)\nreturn y",
    "two selects in a row": "y = x\nif x.sum() > 0:\n    y = y.sqrt()\nif y.mean() > 1:\n    y = y / y\nreturn y",
    "select that feeds a guard": "y = x\nif x.sum() > 0:\n    y = y.sqrt()\nif (y < 0).any():\n    raise ValueError('negative')\nreturn y",
}.items():
    shapes.add(
        name,
        body,
        init="self.norm = nn.BatchNorm1d(3)",
        top="TOTAL = None",
        varied=name not in {"while True", "recursion"},
    )
    if "self." not in body and "super" not in body and "global" not in body:
        text = "".join(f"    {line}\n" for line in body.splitlines())
        shapes.add(
            f"{name}, of a layer's result",
            f"x = self.linear(x)\n{body}",
            init="self.linear = nn.Linear(3, 3)",
            top="TOTAL = None",
            args="x",
            varied=False,
            training=(True,),
        )

guards = Group("guards")
for name, body in {
    "and self.check behind": "if (x < 0).any() and self.check:\n    raise ValueError('negative')\nreturn x",
    "and self.check before": "if self.check and (x < 0).any():\n    raise ValueError('negative')\nreturn x",
    "print under isnan": "if torch.isnan(x).any():\n    print('nan')\nreturn x",
    "guard behind a print under isnan": "if torch.isnan(x).any():\n    print('nan')\nif (x < 0).any():\n    raise ValueError('negative')\nreturn x",
    "guard under another break": "if x.sum() > 0:\n    if (x > 3).any():\n        raise ValueError('large')\n    print(x)\nreturn x",
    "message from a variable": "message = 'negative values'\nif (x < 0).any():\n    raise ValueError(message)\nreturn x",
    "message of an assert from a variable": "message = f'negative in {tuple(x.shape)}'\nassert (x >= 0).all(), message\nreturn x",
    "message that reads the tensor": "if (x < 0).any():\n    raise ValueError(f'{x.min().item()} is negative')\nreturn x",
    "message with braces and quotes": "if (x < 0).any():\n    raise ValueError('{\"a\": 1}\\n%s \\\\ \\'x\\'')\nreturn x",
    "own exception": "if (x < 0).any():\n    raise Negative(x)\nreturn x",
    "exception with an attribute": "if (x < 0).any():\n    raise Negative(x, code=3)\nreturn x",
    "exception with effects": "if (x < 0).any():\n    raise ValueError(self.note('negative'))\nreturn x",
    "exception class": "if (x < 0).any():\n    raise ValueError\nreturn x",
    "exception from": "if (x < 0).any():\n    raise ValueError('negative') from KeyError('x')\nreturn x",
    "exception from None": "if (x < 0).any():\n    raise ValueError('negative') from None\nreturn x",
    "StopIteration": "def rows():\n    for row in x:\n        if (row < 0).any():\n            raise StopIteration('x')\n        yield row\nreturn sum(rows())",
    "KeyboardInterrupt": "if (x < 0).any():\n    raise KeyboardInterrupt\nreturn x",
    "NotImplementedError": "if (x < 0).any():\n    raise NotImplementedError('negative')\nreturn x",
    "count before raise": "if (x < 0).any():\n    self.count += 1\n    raise ValueError('negative')\nreturn x",
    "log before raise": "if (x < 0).any():\n    logger.error('negative')\n    raise ValueError('negative')\nreturn x",
    "else arm": "if (x < 0).any():\n    raise ValueError('negative')\nelse:\n    x = x.sqrt()\nreturn x",
    "elif raise": "if x.dim() > 3:\n    x = x[0]\nelif (x < 0).any():\n    raise ValueError('negative')\nreturn x",
    "raise in else": "if (x >= 0).all():\n    x = x.sqrt()\nelse:\n    raise ValueError('negative')\nreturn x",
    "several raises": "if (x < 0).any():\n    raise ValueError('negative')\nif (x > 3).any():\n    raise ValueError('large')\nreturn x.sqrt()",
    "guard that protects an operation": "if (x == 0).any():\n    raise ZeroDivisionError('zero')\nreturn 1 / x",
    "guard that protects an index": "i = x.sum().long()\nif i >= 2:\n    raise IndexError('far')\nreturn x[i]",
    "guard on an index tensor": "i = x.nan_to_num().long().abs()\nif (i > 2).any():\n    raise IndexError('far')\nreturn self.table[i]",
    "more than one element": "if x[0] > 0:\n    raise ValueError('many')\nreturn x",
    "one element by luck": "if x[:, :1] > 0:\n    raise ValueError('many')\nreturn x",
    "0-dim or not": "if (x > 0).all(-1):\n    raise ValueError('many')\nreturn x",
    "assert more than one element": "assert (x > 0).all(-1), 'many'\nreturn x",
    "assert a number": "assert x.sum() != 0\nreturn x",
    "assert a sum": "assert x.sum(), 'zero'\nreturn x",
    "assert with not": "assert not (x < 0).any(), 'negative'\nreturn x",
    "assert several": "assert (x >= 0).all() and x.dim() == 2, 'bad'\nreturn x",
    "assert or": "assert x.dim() == 2 or (x >= 0).all(), 'bad'\nreturn x",
    "assert with python first": "assert x.shape[0] == 2 and (x >= 0).all(), 'bad'\nreturn x",
    "assert of a nan": "assert not torch.isnan(x).any()\nreturn x",
    "assert with a walrus": "assert (m := x.max()) > 0, f'{m}'\nreturn x / m",
    "assert in a loop": "for row in x:\n    assert (row >= 0).all(), 'negative row'\nreturn x",
    "assert on numpy": "assert np.isfinite(x.detach().numpy()).all()\nreturn x",
    "assert equal": "assert torch.equal(x, x.abs()), 'negative'\nreturn x",
    "assert allclose": "assert torch.allclose(x.sum(-1), torch.ones(2)), 'no distribution'\nreturn x",
    "assert with effects": "assert (self.note('a') and (x >= 0).all()), 'negative'\nreturn x",
    "assert item": "assert x.max().item() < 3\nreturn x",
    "warn": "if (x < 0).any():\n    warnings.warn('negative')\nreturn x",
    "torch._assert": "torch._assert((x >= 0).all(), 'negative')\nreturn x",
    "torch._assert with a message that reads": "torch._assert(bool((x >= 0).all()), f'negative {x.min()}')\nreturn x",
    "torch._check": "torch._check(x.min().item() >= 0)\nreturn x",
    "torch.testing": "torch.testing.assert_close(x, x.abs())\nreturn x",
    "raise under no_grad": "with torch.no_grad():\n    if (x < 0).any():\n        raise ValueError('negative')\nreturn x",
    "raise in a nested function": "def check(t):\n    if (t < 0).any():\n        raise ValueError('negative')\n    return t\nreturn check(x) * 2.0",
    "raise in a lambda's function": "return apply(lambda t: check(t), x)",
    "raise in a static method": "return self.checked(x)",
    "raise in a hook": "return self.inner(x)",
    "raise in a property": "self.x = x\nreturn self.safe",
    "guard on a buffer": "if self.table.sum() > 100:\n    raise ValueError('table')\nreturn x",
    "guard on a parameter": "if torch.isnan(self.weight).any():\n    raise ValueError('weight')\nreturn x * self.weight",
    "guard on a default tensor": "if (self.table[0] > 5).all():\n    raise ValueError('table')\nreturn x",
    "guard on a shape tensor": "s = torch.tensor(x.shape)\nif (s < 2).any():\n    raise ValueError('small')\nreturn x",
    "guard on a list tensor": "sizes = [2, 3]\ns = torch.tensor(sizes)\nif s.sum() != 5:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list that is appended": "sizes = [2, 3]\ns = torch.tensor(sizes)\nsizes.append(1)\nif s.sum() != 5:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list that an alias reverses": "sizes = [[2, 3], [1, 1]]\nsame = sizes\ns = torch.tensor(sizes)\nsame[0][0] = 9\nif (s[:, 0] * s[:, 1]).sum() != 7:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list that a method changes": "s = torch.tensor(self.sizes)\nself.grow()\nif (s[:, 0] * s[:, 1]).sum() != 7:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list that a function changes": "sizes = [[2, 3], [1, 1]]\ns = torch.tensor(sizes)\ngrow(sizes)\nif (s[:, 0] * s[:, 1]).sum() != 7:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list of floats": "sizes = [0.1, 0.2]\ns = torch.tensor(sizes)\nif s.sum() != 0.3:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list of bools": "flags = [True, False]\ns = torch.tensor(flags)\nif s.all():\n    raise ValueError('flags')\nreturn x",
    "guard on a list that overflows int32": "sizes = [[70000, 70000], [1, 1]]\ns = torch.tensor(sizes, dtype=torch.int32)\nif (s[:, 0] * s[:, 1]).sum() > 0:\n    return x\nraise ValueError('overflow')",
    "guard on a list of uint8": "sizes = [[20, 20], [1, 1]]\ns = torch.tensor(sizes, dtype=torch.uint8)\nif (s[:, 0] * s[:, 1]).sum() != 401:\n    raise ValueError('wrapped')\nreturn x",
    "guard on an empty list": "sizes = []\ns = torch.tensor(sizes)\nif s.sum() != 0:\n    raise ValueError('sizes')\nreturn x",
    "guard on a generator": "sizes = ((i, i) for i in range(2))\ns = torch.tensor(list(sizes))\nif s.sum() != 2:\n    raise ValueError('sizes')\nreturn x",
    "guard on a range": "s = torch.tensor(range(3))\nif s.sum() != 3:\n    raise ValueError('sizes')\nreturn x",
    "guard before del torch": "global torch\nif (x < 0).any():\n    raise ValueError('negative')\nreturn x",
}.items():
    guards.add(
        name,
        body,
        init="""
        self.check = True
        self.count = 0
        self.sizes = [[2, 3], [1, 1]]
        self.register_buffer("table", torch.ones(3, 3))
        self.weight = nn.Parameter(torch.ones(3))
        self.inner = nn.Linear(3, 3)
        """,
        methods="""
        def note(self, text):
            self.count += 1
            return text

        def grow(self):
            self.sizes[0][0] = 9

        @staticmethod
        def checked(x: torch.Tensor):
            if (x < 0).any():
                raise ValueError("negative")
            return x * 2.0

        @property
        def safe(self):
            if (self.x < 0).any():
                raise ValueError("negative")
            return self.x * 2.0
        """,
        top="""
        class Negative(Exception):
            def __init__(self, x, code=1):
                super().__init__(f"negative {tuple(x.shape)}")
                self.code = code


        def apply(function, x):
            return function(x)


        def check(t: torch.Tensor):
            if (t < 0).any():
                raise ValueError("negative")
            return t


        def grow(sizes):
            sizes[0][0] = 9
        """,
        varied=name in {"one element by luck", "and self.check before", "assert a sum"},
    )

messages = Group("messages")
for name, body in {
    "print a tensor": "print(x.sum())",
    "print a shape": "print(x.shape)",
    "print to a stream": "import sys\nprint('a', file=sys.stderr)",
    "print to own stream": "import io\nout = io.StringIO()\nprint('a', file=out)\nself.said = out.getvalue()",
    "print flush": "print('a', end='', flush=True)",
    "print effects": "print(self.note('a'))",
    "print a property with effects": "print(self.counted)",
    "print an own get": "print(self.table.get('a'))",
    "print own values": "print(list(self.table.values()))",
    "print own len": "print(len(self.table))",
    "print own str": "print(self.table)",
    "print own getitem": "print(self.table['a'])",
    "print own format": "print(f'{self.table}')",
    "print own contains": "print('a' in self.table)",
    "print a generator": "g = (self.note(i) for i in range(2))\nprint(list(g))",
    "print of next": "it = iter([1, 2])\nprint(next(it))\nself.said = next(it)",
    "print of pop": "todo = [1, 2]\nprint(todo.pop())\nself.said = len(todo)",
    "print of a walrus": "print((n := 3))\nself.said = n",
    "print of a write": "print(x.add_(1))",
    "print of an await-free lambda": "print((lambda: self.note('b'))())",
    "print of random": "print(torch.rand(2))",
    "print of python random": "import random\nprint(random.random())",
    "print of time": "import time\nself.before = time.time() > 0\nprint('at', self.before)",
    "logger of a tensor": "logger.info('mean %s', x.mean())",
    "logger with an f-string": "logger.warning(f'{x.shape} {x.dtype}')",
    "logger of effects": "logger.warning('n %s', self.note('a'))",
    "logger debug with a tensor": "logger.debug('x', extra={'x': x})",
    "logger exception": "try:\n    x.view(7)\nexcept RuntimeError:\n    logger.exception('failed')",
    "logger exc_info": "logger.warning('a', exc_info=True)",
    "logger stack_info": "logger.warning('a', stacklevel=2)",
    "logger log": "logger.log(logging.WARNING, 'a')",
    "logger method by name": "getattr(logger, 'warning')('a')",
    "logger as an attribute": "self.logger.warning('a')",
    "logger of another name": "log = logger\nlog.warning('a')",
    "root logger": "logging.warning('root')",
    "own logger class": "self.mine.warning('a')",
    "warning once a call": "for _ in range(2):\n    warnings.warn('twice')",
    "warning with a category": "warnings.warn('old', DeprecationWarning, stacklevel=2)",
    "warning as an error": "with warnings.catch_warnings():\n    warnings.simplefilter('error')\n    try:\n        warnings.warn('x')\n    except UserWarning:\n        x = x + 1.0",
    "warnings recorded": "with warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n    warnings.warn('x')\nself.said = len(seen)",
    "warn_explicit": "warnings.warn_explicit('x', UserWarning, 'f.py', 3)",
    "warning of a tensor": "warnings.warn(f'{x.sum()}')",
    "message under a tensor": "if x.sum() > 0:\n    logger.warning('positive')",
    "print under a tensor": "if x.sum() > 0:\n    print('positive')",
    "message and a write under a tensor": "if x.sum() > 0:\n    logger.warning('positive')\n    x = x + 1.0",
    "message under a flag": "if self.training:\n    logger.warning('training')",
    "message once by an attribute": "if not self.warned:\n    logger.warning('first')\n    self.warned = True",
    "message in a condition": "if logger.isEnabledFor(logging.DEBUG):\n    logger.debug('x %s', x)",
    "message result used": "self.said = logger.warning('a')",
    "message in an expression": "logger.warning('a') or print('b')",
    "message as a default": "x = x + (0 if logger.warning('a') is None else 1)",
    "redirected": "with contextlib.redirect_stdout(None):\n    print('a')",
    "replaced print": "print = self.note\nprint('a')",
    "pprint": "import pprint\npprint.pprint({'a': 1})",
    "sys.stdout.write": "import sys\nsys.stdout.write('a')",
    "handler called": "logger.handle(logging.makeLogRecord({'msg': 'a'}))",
    "traceback": "import traceback\ntraceback.print_stack(limit=0)",
    "breakpoint-like": "import sys\nself.said = sys.exc_info()[0] is None",
    "in a comprehension": "[print(i) for i in range(2)]",
    "in a lambda": "f = lambda t: print('l')\nf(x)",
    "in a loop over rows": "for row in x:\n    print(row.sum())",
    "in try": "try:\n    print(x.view(7))\nexcept RuntimeError:\n    x = x * 2.0",
    "argument raises": "try:\n    print(self.missing)\nexcept AttributeError:\n    x = x * 2.0",
    "argument of item": "print(x.sum().item())",
    "argument of numpy": "print(x.detach().numpy())",
    "argument of id": "print(type(x).__name__)",
    "once per location": "warn_once('a')",
    "lru cached helper": "warn_cached('a')",
}.items():
    messages.add(
        name,
        f"{body}\nreturn x * 2.0",
        init="""
        self.calls = 0
        self.said = None
        self.warned = False
        self.table = Table()
        self.logger = logging.getLogger("other")
        self.mine = Mine()
        """,
        methods="""
        def note(self, text):
            self.calls += 1
            return text

        @property
        def counted(self):
            self.calls += 1
            return self.calls
        """,
        top="""
        import functools


        class Table:
            def __init__(self):
                self.reads = 0

            def get(self, name):
                self.reads += 1
                return self.reads

            def values(self):
                self.reads += 1
                return [self.reads]

            def __len__(self):
                self.reads += 1
                return self.reads

            def __str__(self):
                self.reads += 1
                return f"Table({self.reads})"

            def __getitem__(self, name):
                self.reads += 1
                return self.reads

            def __contains__(self, name):
                self.reads += 1
                return False


        class Mine:
            def __init__(self):
                self.said = []

            def warning(self, text):
                self.said.append(text)


        _SEEN = set()


        def warn_once(text):
            if text not in _SEEN:
                _SEEN.add(text)
                logger.warning(text)


        @functools.lru_cache(None)
        def warn_cached(text):
            logger.warning(text)
        """,
        varied=False,
        inputs=_TWO,
        training=(False,),
    )
