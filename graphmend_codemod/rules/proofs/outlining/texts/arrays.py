"""A function that gives a NumPy array as one operator, in terms of `torch`."""

from __future__ import annotations

from graphmend_codemod.rules.proofs.outlining.texts.parts import EAGER

FITS = '''\
def _fits_arrays(*given) -> bool:
    """True if an operator can take what is given: known while tracing."""
    plain = (int, float, bool, type(None))
    return all(
        (type(each) is torch.Tensor and not each.requires_grad and each.device.type != "meta")
        or type(each) in plain
        or (type(each) in (list, tuple) and all(type(one) is int for one in each))
        for each in given
    )'''

ARRAY_OPERATOR = (
    '''\
def _array_operator(like):
    """Make `code(*given)`, which returns a NumPy array, one operator for torch.compile, which does not look inside.

    `given` are tensors, numbers, bools, None, and tuples or lists of integers. `like(*given)` makes a tensor like the
    result. No gradient goes through it, and NumPy draws the random numbers that it draws in eager mode: the operator
    says that it writes into `calls`, so that the compiler leaves none out, merges no two and keeps them in order.
    """
    import functools

    calls = torch.zeros((), dtype=torch.int64, device="cpu")

    def packed(given):
        tensors, sizes, floats, form = [], [], [], []
        for each in given:  # -1: an integer, -2: a float, -3: a tensor, -4: None, -5 and -6: False and True
            if isinstance(each, torch.Tensor):
                tensors.append(each)
                form.append(-3)
            elif each is None or type(each) is bool:
                form.append(-4 if each is None else -5 - int(each))
            elif type(each) is float:
                floats.append(each)
                form.append(-2)
            else:  # from 0 on: the length of a tuple, from -7 down: that of a list
                sizes.extend([each] if type(each) is int else each)
                form.append(-1 if type(each) is int else len(each) if type(each) is tuple else -7 - len(each))
        return tensors, sizes, floats, form

    def unpacked(tensors, sizes, floats, form):
        tensors, sizes, floats = iter(tensors), iter(sizes), iter(floats)
        for kind in form:
            if -7 < kind < -3:
                yield {-4: None, -5: False, -6: True}[kind]
            elif -4 < kind < 0:
                yield next({-1: sizes, -2: floats, -3: tensors}[kind])
            else:
                several = [next(sizes) for _ in range(kind if kind >= 0 else -7 - kind)]
                yield tuple(several) if kind >= 0 else several

    def decorate(code):
'''
    + EAGER.lstrip("\n")
    + """
        def run(calls, *given):
            return torch.from_numpy(eager()(*unpacked(*given)))

        def fake(calls, *given):
            return like(*unpacked(*given))

        name = _operator_name(code.__name__.strip("_"), code.__module__)
        tag = getattr(torch.Tag, "cudagraph_unsafe", None)
        schema = "(Tensor(a!) calls, Tensor[] tensors, SymInt[] sizes, float[] floats, int[] form) -> Tensor"
        torch.library.define(name, schema, tags=[tag] if tag is not None else [])
        torch.library.impl(name, "default", run)
        torch.library.register_fake(name, fake)
        space, _, short = name.partition("::")
        operator = getattr(getattr(torch.ops, space), short).default

        def outlined(*given):
            return operator(calls, *packed(given)).numpy()

        return outlined

    return decorate"""
)


LIKE_DRAWN = """\
def _uniform_like(low, high):
    return torch.empty((), dtype=torch.float64, device="cpu")"""

DRAWN = '''\
@_array_operator(like=_uniform_like)
def _uniform_in_graph(low, high):
    """A number that NumPy draws, as an array without dimensions, which torch.compile gets from one operator."""
    import numpy

    return numpy.asarray(numpy.random.uniform(low, high))'''
