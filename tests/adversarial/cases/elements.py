"""Branches that write elements: views, shapes that only fit where the branch is taken, dtypes, tests that change."""

from textwrap import indent

from tests.adversarial.case import Group

elements = Group("elements in a branch")

for name, body in {
    "a number": "out[0] = 1.0",
    "a row": "out[0] = x[0]",
    "a row of another shape": "out[0] = x",
    "a column": "out[:, -1] = x[:, 0]",
    "the tensor itself": "out[:] = out * 2.0",
    "one more dimension": "out[None, 0] = x[None, 1]",
    "dots": "out[..., 1] = 0",
    "a row that is not there": "out[7] = 1.0",
    "an integer that is no index": "out[size] = 1.0",
    "a slice to a number": "out[:, :size] = 2.0",
    "a slice to None": "out[:, :nothing] = 2.0",
    "a slice to a float": "out[:, :half] = 2.0",
    "True": "out[yes] = 3.0",
    "a list": "out[[0, 1]] = 2.0",
    "added": "out[0] += 2.0",
    "added to a row": "out[0] += x[0]",
    "divided by zero": "out[1] /= 0.0",
    "a mask": "out[x > 0] = 5.0",
    "a mask of rows": "out[x.sum(1) > 0] = 5.0",
    "a mask that does not fit": "out[x[0] > 0] = 5.0",
    "a mask of another test": "out[x > 0] = float('nan')",
    "what is added under a mask": "out[x > 0] += 5.0",
    "what a mask chooses": "out[x > 0] = x[x > 0]",
    "twice": "out[0] = 1.0\nout[0] = out[0] * 3.0\nout[1] = out[0]",
    "through a name": "first = out[0]\nfirst[0] = 9.0\nout[1] = first",
    "what overlaps": "out[0] = out[1]\nout[1] = out[0]",
    "inf": "out[0] = -math.inf",
    "inf by numpy": "out[0, 0] = np.inf",
    "too large for half precision": "out[0] = 1e30",
    "a double": "out[0] = x[0].double() * 1.1",
    "a single tensor": "out[0] = x.sum()",
    "a root": "out[0] = x[0].sqrt()",
    "log of zero": "out[0, 1] = x.log().sum()",
    "a complex number": "out[0] = 1j",
    "a bool": "out[0] = True",
    "None": "out[0] = None",
    "a text": "out[0] = 'no'",
    "a name that is kept": "kept = x * 2.0\nout[0] = kept[0]",
    "an attribute": "out[0] = self.scale",
    "an attribute that is no number": "out[0] = self.name",
}.items():
    elements.add(
        name,
        "out = x * 1.0\nother = out\nsize, nothing, half, yes = 2, None, 1.5, True\nif x.sum() > 0:\n"
        + indent(body, "    ")
        + "\nreturn out, other, out[0].sum()",
        init="self.scale = 0.5\nself.name = 'a'",
    )

for name, made in {
    "zeros": "torch.zeros_like(x)",
    "ones of integers": "torch.ones(2, 3, dtype=torch.int64) * (2**53 + 1)",
    "bytes": "torch.full((2, 3), 250, dtype=torch.uint8)",
    "bools": "x > 0.5",
    "half precision": "x.half()",
    "complex numbers": "x + 1j",
    "a view": "x[:, :]",
    "a transposed view": "x.t().contiguous().t()",
    "an expanded row": "x[0].expand(2, 3)",
    "one of several views": "x.unbind(0)[0].unsqueeze(0)",
    "a chunk": "x.chunk(1)[0]",
    "the argument": "x",
    "a parameter": "self.weight",
    "a buffer": "self.rows",
    "a detached parameter": "self.weight.detach()",
    "a list of tensors": "[x[0], x[1]]",
    "what asks for a gradient": "torch.zeros(2, 3, requires_grad=True)",
    "one row": "x[:1]",
    "no row": "x[:0]",
    "one dimension": "x[0]",
    "one element": "x.sum()",
}.items():
    for what, lines in {
        "number": "out[0] = 0",
        "float": "out[0] = 0.25",
        "both": "out[0] += 1\nout[1] = out[0]",
    }.items():
        elements.add(
            f"{made if name == 'x' else name}, {what}",
            f"out = {made}\nif x.mean() > 0.2:\n" + indent(lines, "    ") + "\nelse:\n    out[-1] = 7\nreturn out, x",
            init="self.weight = nn.Parameter(torch.ones(2, 3))\nself.register_buffer('rows', torch.ones(2, 3))",
        )

for name, body in {
    "the test changes": """
        out = x * 1.0
        first = out[0, 0] > 0.5
        if out[0, 0] > 0.5:
            out[0, 0] = -1.0
            out[1, 1] = 5.0
        else:
            out[0, 0] = 1.0
            out[1, 2] = 6.0
        return out, first
        """,
    "the test is a view of what is written": """
        flags = x > 0.5
        out = x * 1.0
        if flags[0, 0]:
            flags[0, 0] = False
            out[0] = 2.0
        elif flags[0, 1]:
            flags[0, 0] = True
            out[1] = 3.0
        else:
            out[1] = 4.0
        return out, flags
        """,
    "the test is a name": """
        flag = x.sum() > 0
        out = x * 1.0
        if flag:
            out[0] = 1.0
            flag = x.sum() > 1
        return out, flag
        """,
    "one more test behind": """
        out = x * 1.0
        if x.sum() > 0 and out.dim() == 2:
            out[0] = 1.0
        elif x.sum() < -5:
            out[1] = 2.0
        elif x.isnan().any():
            out[0, 1] = 3.0
        return out
        """,
    "rows of a loop": """
        out = torch.zeros_like(x)
        for i in range(x.shape[0]):
            if x[i].sum() > 0:
                out[i] = x[i] * 2.0
            else:
                out[i, -1] = -1.0
        return out
        """,
    "rows of a loop that goes too far": """
        out = torch.zeros_like(x)
        for i in range(3):
            if x[0, 0] > 2.0:
                out[i] = 1.0
            elif i < 2 and x[i].sum() > 1:
                out[i] = 2.0
        return out
        """,
    "names beside elements": """
        out = x * 1.0
        total = x.sum()
        if total > 0:
            scale = total * 2.0
            out[0] = scale
        else:
            scale = total - 1.0
            out[1] = scale
        return out, total
        """,
    "a name that lives on": """
        out = x * 1.0
        if x.sum() > 0:
            x = x * 2.0
            out[0] = 1.0
        return out, x
        """,
    "read for a gradient before": """
        out = x.exp()
        twice = out * out
        if x.sum() > 1000:
            out[0] = 1.0
        return out.sum() + twice.sum()
        """,
    "what another function holds": """
        out = x * 1.0
        look = lambda: out.sum()
        if x.sum() > 0:
            out[0] = 2.0
        return out, look()
        """,
    "under no_grad": """
        out = self.weight
        with torch.no_grad():
            if x.sum() > 0:
                out[0] = 2.0
        return out * x
        """,
    "a gradient that ends at zero": """
        h = x * self.weight
        out = h * 1.0
        if x.sum() > 0:
            out[0] = out[0] * 2.0
        else:
            out[1] = out[1].abs().sqrt()
        return out
        """,
}.items():
    elements.add(name, body, init="self.weight = nn.Parameter(torch.ones(2, 3))")

under = Group("writes under a mask that a test looks at")

for name, body in {
    "two numbers": "out[m] = 1.0\nx[m] = 2.0",
    "rows": "out[m] = y[m]",
    "rows and a flag": "out[m] = y[m]\ndone |= m",
    "rows of a root": "out[m] = x.sqrt()[m]",
    "rows of another tensor": "out[m] = self.weight[m]",
    "rows of another dtype": "out[m] = y.double()[m]",
    "rows of another shape": "out[m] = self.table[m]",
    "a parameter": "out[m] = self.scale",
    "a value that raises": "out[m] = x[5, 5]",
    "a name": "t = x * 2.0\nout[m] = t[m]",
    "a name that lives on": "y = x * 2.0\nout[m] = y[m]",
    "a name that changes the mask": "m = m & done\nout[m] = 1.0",
    "an attribute": "out[m] = 1.0\nself.count += 1",
    "another mask": "out[~m] = 1.0",
    "where": "out = torch.where(m, y, out)",
    "where that is kept": "out = torch.where(m, y, out)\nout.mul_(2.0)",
    "masked_fill of a number": "out = out.masked_fill(m, 3.0)\ny = y.masked_fill(m, 1e30)",
    "flags both ways": "done &= ~m",
    "flags that are no masks": "counts |= m",
    "a print": "out[m] = 0.0\nprint(out)",
    "max of rows": "out[m] = y[m].max()",
    "a sum": "out[m] += 1.0",
    "more dimensions": "out[None].masked_fill_(m.unsqueeze(0), 2.0)",
    "more dimensions than there are": "out = out.masked_fill(m.unsqueeze(0), 2.0)",
    "a dimension that is not there": "out = out.masked_fill(m.unsqueeze(3), 2.0)",
    "all of it": "out = out.masked_fill(m[:, :].to(torch.bool), 2.0)",
}.items():
    for test in ("m.any()", "m.sum() > 0", "bool(torch.any(m))"):
        under.add(
            f"{name}, {test}",
            "out, y, done = x * 1.0, x - 1.0, x.isnan()\ncounts = torch.ones(2, 3, dtype=torch.int64)\nkept = out\n"
            f"m = x > 2.0\nif {test}:\n" + indent(body, "    ") + "\nreturn out, y, done, m, kept, counts",
            init="self.weight = nn.Parameter(torch.ones(2, 3))\nself.scale = nn.Parameter(torch.tensor(2.0))\n"
            "self.table = torch.ones(2, 3, 2)\nself.count = 0",
        )
    under.add(
        f"{name}, not all",
        "out, y, done = x * 1.0, x - 1.0, x.isnan()\ncounts = torch.ones(2, 3, dtype=torch.int64)\nkept = out\n"
        "n = x < 2.0\nif not n.all():\n"
        + indent(body.replace("~m", "n").replace("m]", "~n]").replace("(m", "(~n").replace("= m", "= ~n"), "    ")
        + "\nreturn out, y, done, n, kept, counts",
        init="self.weight = nn.Parameter(torch.ones(2, 3))\nself.scale = nn.Parameter(torch.tensor(2.0))\n"
        "self.table = torch.ones(2, 3, 2)\nself.count = 0",
        varied=False,
    )
