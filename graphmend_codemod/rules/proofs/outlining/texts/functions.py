"""A function of tensors that draws no random numbers as one operator, in terms of `torch`.

Feature: `gradient` where results may need one.
"""

from __future__ import annotations

from graphmend_codemod.rules.proofs.outlining.texts import chosen
from graphmend_codemod.rules.proofs.outlining.texts.parts import (
    EAGER,
    GIVEN,
    PUT_TOGETHER,
    REGISTERED,
    TAKEN_APART,
    TAPES,
    WITH_AUTOGRAD,
)

TRANSFORMED = '''\
@torch.compiler.assume_constant_result
def _is_transformed() -> bool:
    """True inside of `torch.func.grad` and the like, which take no gradient of an operator: known while tracing."""
    return torch._C._functorch.peek_interpreter_stack() is not None'''

FITS = (
    '''\
def _fits_a_function(*given) -> bool:
    """True if an operator can take what is given: known while tracing."""
'''
    + GIVEN
    + """\
        return False  # the operator needs data, and finds constants by a number that no other process knows
    return not _is_transformed() and all(
        all(type(each) in tensor for each in group) or all(type(each) in plain for each in group) for group in groups
    )"""
)

FUNCTION_OPERATOR = (
    '''\
def _function_operator(shapes, nested=0):
    """Make `code(*given)` one operator for torch.compile, which does not look inside.

    `given` are tensors, lists or tuples of them, numbers and constants. `shapes(*given)` makes empty tensors like the
    results, in a list; `nested` puts these together, as in `(0, (1, 2))`. A gradient takes what autograd  #: gradient
    kept of the call, or runs `code` again.  #: gradient
    results, in a list; `nested` puts these together, as in `(0, (1, 2))`. No gradient goes through it.  #: !gradient
    """
    import functools
    import itertools
    import weakref  #: gradient

    def decorate(code):
        name, numbers, constants = _operator_name(code.__name__.strip("_"), code.__module__), {}, {}

        @torch.compiler.assume_constant_result
        def number_of(others):
            number = numbers.setdefault(repr(others), len(numbers))
            constants[number] = others
            return number

'''
    + PUT_TOGETHER
    + """\
            return tensors, sizes, floats, form, number_of(tuple(others))

        def unpacked(tensors, sizes, floats, form, number):
            tensors = iter(tensors)
            kinds = iter(floats), iter(constants[number]), tensors, iter(sizes)
"""
    + TAKEN_APART
    + EAGER
    + """\

        def around(tensors, autocast):
            return torch.autocast(tensors[0].device.type, autocast, autocast is not None, cache_enabled=False)

        def call(tensors, sizes, floats, form, number, autocast):
            given = unpacked(tensors, sizes, floats, form, number)
            if autocast is None and not torch.is_autocast_enabled(tensors[0].device.type):
                return list(flat(eager()(*given)))
            with around(tensors, autocast):
                return list(flat(eager()(*given)))

        def fake(tensors, sizes, floats, form, number, autocast):
            with around(tensors, autocast):
                found = shapes(*unpacked(tensors, sizes, floats, form, number))
            return [each.new_empty(each.shape) for each in found]

        def run(tensors, *rest):
            return list(separate(call(tensors, *rest), *tensors))

        def define(name, rest_of_schema, run, fake):
            tag = getattr(torch.Tag, "cudagraph_unsafe", None)
            schema = "(Tensor[] tensors, SymInt[] sizes, float[] floats, int[] form, int number, ScalarType? autocast"
            torch.library.define(name, schema + rest_of_schema, tags=[tag] if tag is not None else [])
"""
    + REGISTERED
    + """\

        forward = define(name, ") -> Tensor[]", run, fake)
{gradient}
        def outlined(*given):
            tensors, *rest = packed(given)
            kind = tensors[0].device.type
            rest.append(torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None)
            leaves = [place for place, each in enumerate(tensors) if each.requires_grad]  #: gradient
            if leaves and torch.is_grad_enabled():  #: gradient
                return put(trained(tensors, *rest, leaves)[0], nested)  #: gradient
            return put(forward(tensors, *rest), nested)

        outlined.code = code
        return outlined

    return decorate"""
)

_GRADIENT = (
    WITH_AUTOGRAD
    + TAPES
    + """
        def run_trained(tensors, *rest):
            *rest, leaves = rest
            given = [each.detach().requires_grad_(place in leaves) for place, each in enumerate(tensors)]
            found = with_autograd(call, given, *rest)
            results = [each.clone() for each in separate(each.detach() for each in found)]  # they may be written later
            return results, token_of(tensors, given, found)

        def fake_trained(tensors, *rest):
            return fake(tensors, *rest[:-1]), torch.empty(1, dtype=torch.int64, device="cpu")

        def run_again(tensors, *rest):
            *rest, grads, wanted = rest

            def again(*chosen):
                changed = dict(zip(wanted, chosen))
                found = call([changed.get(place, each) for place, each in enumerate(tensors)], *rest)
                return tuple(each for each in found if each.is_floating_point() or each.is_complex())

            with torch.enable_grad():
                found = torch.func.vjp(again, *[tensors[place] for place in wanted])[1](tuple(grads))
            return list(separate([each.detach() for each in found], *grads))

        def run_backward(tensors, *rest):
            *rest, grads, token, wanted = rest
            given, found = tape_of(token, tensors)
            if not given or any(not given[place].requires_grad for place in wanted):
                return run_again(tensors, *rest, grads, wanted)
            return list(separate(gradient_of(given, found, grads, wanted), *grads, *tensors))

        def fake_backward(tensors, *rest):
            return [tensors[place].new_empty(tensors[place].shape) for place in rest[-1]]

        def keep(ctx, inputs, output):
            tensors, *ctx.rest, _ = inputs
            ctx.smooth = [each.is_floating_point() or each.is_complex() for each in output[0]]
            ctx.save_for_backward(*tensors, output[1])

        def differentiate(ctx, grads, _):
            grads = [each for each, smooth in zip(grads, ctx.smooth) if smooth]
            wanted = [place for place, each in enumerate(ctx.needs_input_grad[0]) if each]
            *tensors, token = ctx.saved_tensors  # once, for a checkpoint lets them be read once
            made = dict(zip(wanted, backward(tensors, *ctx.rest, grads, token, wanted)))
            numbers = [None if each else [] for each in ctx.rest[:3]]
            return [made.get(place) for place in range(len(tensors))], *numbers, None, None, None

        def refuse(ctx, *grads):  # torch would leave parts of it out
            raise RuntimeError(f"torch.compile has no gradient of a gradient for `{name}`")

        trained = define(f"{name}_trained", ", int[] leaves) -> (Tensor[], Tensor)", run_trained, fake_trained)
        more = ", Tensor[] grads, Tensor token, int[] wanted) -> Tensor[]"
        backward = define(f"{name}_backward", more, run_backward, fake_backward)
        torch.library.register_autograd(f"{name}_trained", differentiate, setup_context=keep)
        torch.library.register_autograd(f"{name}_backward", refuse)
"""
)


def operator(*features: str) -> str:
    """The text that makes operators. Feature: `gradient` where results may need one."""
    text = FUNCTION_OPERATOR.replace("{gradient}", _GRADIENT if "gradient" in features else "")
    return chosen(text, *features)


SAME = '''\
def _have_one_form(old: tuple, new: tuple) -> bool:
    """True if these are tensors of the same shapes, dtypes and devices: known while tracing."""
    return all(
        isinstance(before, torch.Tensor)
        and isinstance(after, torch.Tensor)
        and (before.shape, before.dtype, before.device) == (after.shape, after.dtype, after.device)
        for before, after in zip(old, new)
    )'''
