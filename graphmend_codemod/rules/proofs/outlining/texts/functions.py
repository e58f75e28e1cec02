"""A function of tensors that draws no random numbers as one operator, in terms of `torch`.

Feature: `gradient` where results may need one.
"""

from __future__ import annotations

from graphmend_codemod.rules.proofs.outlining.texts.parts import GIVEN, PUT_TOGETHER, REGISTERED, TAKEN_APART

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
    results, in a list; `nested` puts these together, as in `(0, (1, 2))`. A gradient runs `code` again.  #: gradient
    results, in a list; `nested` puts these together, as in `(0, (1, 2))`. No gradient goes through it.  #: !gradient
    """
    import itertools

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
    + """\

        def around(tensors, autocast):
            return torch.autocast(tensors[0].device.type, autocast, autocast is not None, cache_enabled=False)

        def call(tensors, sizes, floats, form, number, autocast):
            run = torch.compiler.disable(code)  # where the graph broke at the operator, Dynamo would go on inside of it
            with around(tensors, autocast):
                return list(flat(run(*unpacked(tensors, sizes, floats, form, number))))

        def fake(tensors, sizes, floats, form, number, autocast):
            with around(tensors, autocast):
                found = shapes(*unpacked(tensors, sizes, floats, form, number))
            return [each.new_empty(each.shape) for each in found]

        def run(tensors, *rest):
            return list(separate(call(tensors, *rest), *tensors))

        def run_backward(tensors, sizes, floats, form, number, autocast, grads, wanted):  #: gradient
            def again(*chosen):  #: gradient
                changed = dict(zip(wanted, chosen))  #: gradient
                given = [changed.get(place, each) for place, each in enumerate(tensors)]  #: gradient
                found = call(given, sizes, floats, form, number, autocast)  #: gradient
                return tuple(each for each in found if each.is_floating_point() or each.is_complex())  #: gradient
  #: gradient
            with torch.enable_grad():  #: gradient
                found = torch.func.vjp(again, *[tensors[place] for place in wanted])[1](tuple(grads))  #: gradient
            return list(separate([each.detach() for each in found], *grads))  #: gradient
  #: gradient
        def fake_backward(tensors, *rest):  #: gradient
            return [tensors[place].new_empty(tensors[place].shape) for place in rest[-1]]  #: gradient
  #: gradient
        def define(name, rest_of_schema, run, fake):
            tag = getattr(torch.Tag, "cudagraph_unsafe", None)
            schema = "(Tensor[] tensors, SymInt[] sizes, float[] floats, int[] form, int number, ScalarType? autocast"
            torch.library.define(name, schema + rest_of_schema, tags=[tag] if tag is not None else [])
"""
    + REGISTERED
    + """\

        def keep(ctx, inputs, output):  #: gradient
            tensors, *ctx.rest = inputs  #: gradient
            ctx.smooth = [each.is_floating_point() or each.is_complex() for each in output]  #: gradient
            ctx.save_for_backward(*tensors)  #: gradient
  #: gradient
        def differentiate(ctx, grads):  #: gradient
            grads = [each for each, smooth in zip(grads, ctx.smooth) if smooth]  #: gradient
            wanted = [place for place, each in enumerate(ctx.needs_input_grad[0]) if each]  #: gradient
            made = dict(zip(wanted, backward(list(ctx.saved_tensors), *ctx.rest, grads, wanted)))  #: gradient
            numbers = [None if each else [] for each in ctx.rest[:3]]  #: gradient
            places = range(len(ctx.needs_input_grad[0]))  # a checkpoint lets saved tensors be read once  #: gradient
            return [made.get(place) for place in places], *numbers, None, None  #: gradient
  #: gradient
        def refuse(ctx, *grads):  # torch would leave parts of it out  #: gradient
            raise RuntimeError(f"torch.compile has no gradient of a gradient for `{name}`")  #: gradient
  #: gradient
        forward = define(name, ") -> Tensor[]", run, fake)
        more = ", Tensor[] grads, int[] wanted) -> Tensor[]"  #: gradient
        backward = define(f"{name}_backward", more, run_backward, fake_backward)  #: gradient
        torch.library.register_autograd(name, differentiate, setup_context=keep)  #: gradient
        torch.library.register_autograd(f"{name}_backward", refuse)  #: gradient

        def outlined(*given):
            tensors, *rest = packed(given)
            kind = tensors[0].device.type
            autocast = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
            return put(forward(tensors, *rest, autocast), nested)

        outlined.code = code
        return outlined

    return decorate"""
)
