"""A statement of which a recorded run tells what it gives, as one operator, in terms of `torch`.

Features: `gradient` where results may need one, and `draws` where NumPy or Python draws random numbers, too.
"""

from __future__ import annotations

from graphmend_codemod.rules.proofs.outlining.texts.parts import EAGER, PUT_TOGETHER, TAKEN_APART, WITH_AUTOGRAD
from graphmend_codemod.rules.proofs.outlining.texts.recorded_gradient import DRAWS, GRADIENT

LIKE = '''\
def _is_like_recorded(x, dtype, rank: int, device: str) -> bool:
    """True for a tensor like those of a recorded run: known while tracing."""
    plain = type(x) in (torch.Tensor, torch.nn.Parameter) and not torch.compiler.is_exporting()
    plain = plain and torch.autograd.forward_ad._current_level < 0  # an operator would drop forward-mode derivatives
    return plain and x.dtype == dtype and x.dim() == rank and x.device.type == device'''

MADE = '''\
@torch.compiler.assume_constant_result
def _are_made(*objects) -> bool:
    """True for objects that were there before: while torch.compile traces, those it makes itself are still empty."""
    return all(getattr(each, "__dict__", None) for each in objects)'''

ELEMENTS = '''\
@torch.compiler.assume_constant_result
def _elements_of(module) -> int:
    """How many numbers are in the parameters: another network may give results of other sizes."""
    return sum(each.numel() for each in module.parameters())'''

UNTRAINED = '''\
@torch.compiler.assume_constant_result
def _holds_no_gradient(module) -> bool:
    """True where no tensor that the attributes of a module hold needs a gradient."""
    waiting, seen = [vars(each) for each in module.modules()], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, torch.Tensor) and each.requires_grad:
            return False
        if isinstance(each, (dict, list, set, tuple)) and id(each) not in seen:
            seen.add(id(each))
            waiting.extend(each.values() if isinstance(each, dict) else each)
    return True'''

APART = '''\
@torch.compiler.assume_constant_result
def _is_apart(module, read: str, layers: str, methods: str = "", file: str = "") -> bool:
    """True where layers of a module, which may change in the graph, hold nothing of what an operator reads of it."""
    own = {**vars(module), **module._parameters, **module._buffers, **module._modules}
    others = [each for each in methods.split() if getattr(type(module), each).__module__ != file or each in own]
    if others or any(each not in own for each in read.split()):
        return False

    def held(names):
        waiting, found = [own.get(each) for each in names.split()], {}
        while waiting:
            each = waiting.pop()
            if isinstance(each, torch.Tensor):
                found[each.untyped_storage().data_ptr() or id(each)] = each
            if id(each) in found or not isinstance(each, (torch.Tensor, torch.nn.Module, dict, list, set, tuple)):
                continue
            found[id(each)] = each
            if isinstance(each, torch.nn.Module):
                waiting.extend(vars(each).values())
            elif not isinstance(each, torch.Tensor):
                waiting.extend(each.values() if isinstance(each, dict) else each)
        return found

    def is_hooked(each):
        return isinstance(each, torch.nn.Module) and bool(each._forward_hooks or each._forward_pre_hooks)

    others = held(layers)
    run = [own.get(each) for each in layers.split()]
    plain = all(isinstance(each, torch.nn.Module) for each in run) and not any(map(is_hooked, others.values()))
    return plain and id(module) not in others and others.keys().isdisjoint(held(read))'''

ARRAY_LIKE = '''\
def _is_array_like_recorded(x, dtype, rank: int) -> bool:
    """True for an array like those of a recorded run: known while tracing."""
    import numpy

    like = isinstance(x, numpy.ndarray) and not torch.compiler.is_exporting()
    return like and x.ndim == rank and torch.as_tensor(x).dtype == dtype'''

OPERATOR = (
    '''\
def _recorded_operator(results, count: int, form: str):  #: !gradient
def _recorded_operator(results, count: int, form: str, held=None):  #: gradient
    """Make `code(*given)` one operator for torch.compile, which does not look inside.

    `results(*given)` has the sizes, dtype and device of each of `count` results, as the calls of a recorded run had
    them; a word stands for a size that only the data tells. `form` tells how they are put together. Results that are
    other than that raise an error, and so does a change of what is given.
    The operator says that it writes into `calls`, so that no call is left out, no two are  #: !gradient
    merged, and they stay in order.  #: !gradient
    A gradient takes what autograd kept of the call, or runs `code` again.  #: gradient
    `held(*given)` are the parameters in what is given.  #: gradient
    """
    import contextlib  #: draws
    import functools
    import itertools
    import random  #: draws
    import struct  #: draws
    import weakref

    import numpy  #: draws

    calls = torch.zeros((), dtype=torch.int64, device="cpu")

    def decorate(code):
        name, counted, constants = _operator_name(code.__name__.strip("_"), code.__module__), itertools.count(), {}

        def kept(each):
            return weakref.ref(each) if isinstance(each, torch.nn.Module) else lambda: each

        @torch.compiler.assume_constant_result
        def number_of(*others):  # another one for each call: equal calls are not merged
            number = next(counted)
            constants[number] = [kept(each) for each in others]
            return number

'''
    + PUT_TOGETHER
    + """\
            once, places = [], []
            for each in tensors:  # what is one object is given once: `code` may ask `a is b`
                place = 0
                while place < len(once) and once[place] is not each:
                    place += 1
                once += [each] * (place == len(once))
                places.append(place)
            return once, sizes, floats, [len(places), *places, *form], number_of(*others)

        def unpacked(tensors, sizes, floats, form, number):
            end = 1 + form[0]
            tensors, form = iter([tensors[place] for place in form[1:end]]), form[end:]
            kinds = iter(floats), (each() for each in constants[number]), tensors, iter(sizes)
"""
    + TAKEN_APART.partition("\n        def put")[0]
    + EAGER
    + """\

        def is_autocast(tensors):
            return torch.is_autocast_enabled(tensors[0].device.type if tensors else "cpu")

        def around(tensors, autocast):
            kind = tensors[0].device.type if tensors else "cpu"
            return torch.autocast(kind, autocast, autocast is not None, cache_enabled=False)

        def promised(each, sizes, dtype, device):
            if not isinstance(each, torch.Tensor) or each.dtype != dtype:
                return False
            if each.device.type != torch.device(device).type:
                return False
            own = each.shape
            if own == sizes:
                return True
            return len(own) == len(sizes) and all(type(size) is str or size == n for size, n in zip(sizes, own))

        def shared(found, others):  # what is wrong where a result has the memory of another tensor
            known = []
            for each in others:
                store = each.untyped_storage()
                known.append((store.data_ptr(), store.data_ptr() + store.nbytes()))
            for each in found:
                store = each.untyped_storage()
                start, end = store.data_ptr(), store.data_ptr() + store.nbytes()
                for n, (begin, stop) in enumerate(known):
                    if start < stop and begin < end:
                        return "returned one memory twice" if n >= len(others) else "returned the memory of an argument"
                known.append((start, end))

        def form_of(found):
            if found is None or isinstance(found, torch.Tensor):
                return "None" if found is None else "tensor"
            if type(found) in (list, tuple):
                inner = ", ".join(map(form_of, found))
                return f"[{inner}]" if type(found) is list else f"({inner})"
            return "array" if hasattr(found, "__array__") else type(found).__name__

        def versions(tensors):
            return [0 if each.is_inference() else each._version for each in tensors]

        def buffers_of(objects):  # the walk takes longer than what is asked of them, before and after
            waiting, found = [each for each in objects if isinstance(each, torch.nn.Module)], {}
            while waiting:
                part = waiting.pop()
                if part is not None and id(part) not in found:
                    found[id(part)] = part._buffers
                    waiting.extend(part._modules.values())
            return list(found.values())

        def parts_of(objects):  # their attributes, or what is in them, and what of that has a version or a length
            held = [each if type(each) is list else getattr(each, "__dict__", {}).values() for each in objects]
            every = [one for each in held for one in each]
            sized = [one for one in every if type(one) in (list, dict, set)]
            return held, [one for one in every if isinstance(one, torch.Tensor)], sized, buffers_of(objects)

        def state_of(held, tensors, sized, buffers):  # what changes where the code writes into what is given
            tensors = tensors + [one for part in buffers for one in part.values() if one is not None]
            ids = [id(one) for each in held for one in each]
            return ids, list(map(id, tensors)), versions(tensors), list(map(len, sized))

        def fail(what):
            where = f"{code.__module__}.{code.__name__}, which torch.compile calls as one operator,"
            raise RuntimeError(f"{where} {what}")
{autograd}
        def call(tensors, sizes, floats, way, number, autocast):  #: gradient
        def call(tensors, sizes, floats, way, number, autocast, leaves):  #: !gradient
            apart, known = [], set()
            for each in tensors:  # Inductor may hand over one tensor for several that are equal
                apart.append(each.detach() if id(each) in known else each)
                known.add(id(each))
            if leaves is not None:  #: !gradient
                apart = [each.detach().requires_grad_(n in leaves) for n, each in enumerate(tensors)]  #: !gradient
            given = list(unpacked(apart, sizes, floats, way, number))
            before, named = versions(tensors), [len(vars(each)) for each in apart]
            objects = [each for each in given if not isinstance(each, torch.Tensor)]
            parts = parts_of(objects) if objects else None
            state = state_of(*parts) if objects else None
            run = eager() if leaves is None else functools.partial(with_autograd, eager())  #: !gradient
            run = eager()  #: gradient
            if autocast is None and not is_autocast(tensors):
                found, wanted = run(*given), results(*given)
            else:
                with around(tensors, autocast):
                    found, wanted = run(*given), results(*given)
            made, found = form_of(found), [found] if isinstance(found, torch.Tensor) else list(flat(found))
            if made != form:
                fail(f"gave {made}, and {form} in the recorded run")
            if any(each.requires_grad for each in found if isinstance(each, torch.Tensor)):  #: !gradient
                fail("gave what needs a gradient, and not in the recorded run")  #: !gradient
            if form != "tensor":
                found = [each for each in found if each is not None]
                found = [each if isinstance(each, torch.Tensor) else torch.as_tensor(each) for each in found]
            for each, (sizes, dtype, device) in zip(found, wanted):
                if not promised(each, sizes, dtype, device):
                    was = f"{each.dtype} of {list(each.shape)}" if isinstance(each, torch.Tensor) else type(each)
                    fail(f"gave {was}, and in the recorded run {dtype} of {list(sizes)}")
            if what := shared(found, tensors):
                fail(f"{what}, which it did not in the recorded run")
            same = before == versions(tensors) and named == [len(vars(each)) for each in apart]
            if not same or (objects and state != state_of(*parts)):
                fail("wrote into an argument, which it did not in the recorded run")
            return [each.detach().contiguous() for each in found]  #: !gradient
            return found  #: gradient

        def fake(tensors, *rest):
            with around(tensors, rest[-1]):
                wanted = list(results(*unpacked(tensors, *rest[:-1])))
            known, shapes = {}, torch.library.get_ctx()._shape_env
            for sizes, _, _ in wanted:
                for each in sizes:
                    if type(each) is str and each not in known:
                        known[each] = torch._library.fake_impl.allocate_size(shapes, 0, None)
            return [
                torch.empty([known[one] if type(one) is str else one for one in sizes], dtype=dtype, device=device)
                for sizes, dtype, device in wanted
            ]

        def as_returned(found):
            return tuple(found) if count != 1 else found[0]

        def define(name, schema, run, fake, *tags):
            found = [getattr(torch.Tag, each, None) for each in ("cudagraph_unsafe", *tags)]
            torch.library.define(name, schema, tags=[each for each in found if each is not None])
            torch.library.impl(name, "default", run)
            torch.library.register_fake(name, fake)
            space, _, short = name.partition("::")
            return getattr(getattr(torch.ops, space), short).default

        def run_counted(calls, *given):
            return as_returned(call(*given))  #: !gradient
            return as_returned([each.detach().contiguous() for each in call(*given)])  #: gradient

        def fake_counted(calls, *given):
            return as_returned(fake(*given[:6]))

        taken = "Tensor[] tensors, SymInt[] sizes, float[] floats, int[] form, int number, ScalarType? autocast"
        returned = f"({', '.join(['Tensor'] * count)})" if count != 1 else "Tensor"
        counting = f"(Tensor(a!) calls, {taken}) -> {returned}"  #: gradient
        counting = f"(Tensor(a!) calls, {taken}, int[]? leaves) -> {returned}"  #: !gradient
        forward = define(name, counting, run_counted, fake_counted)
{gradient}
        def outlined(*given):
            tensors, *rest = packed(given)
            kind = tensors[0].device.type if tensors else "cpu"
            rest.append(torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None)
            inside = list(held(*given)) if held is not None else []  #: gradient
            if torch.is_grad_enabled() and any(each.requires_grad for each in tensors + inside):  #: gradient
                rest.append([n for n, each in enumerate(tensors) if each.requires_grad])  #: gradient
                found = trained((tensors + inside)[0], tensors + inside, *rest)[0]  #: gradient
                return found[0] if count == 1 else tuple(found)  #: gradient
            leaves = [n for n, each in enumerate(tensors) if each.requires_grad]  #: !gradient
            rest.append(leaves if torch.is_grad_enabled() else None)  #: !gradient
            return forward(calls, [each.detach() for each in tensors], *rest)

        return outlined

    return decorate"""
)

NAMES = {(): "_recorded_operator", ("gradient",): "_recorded_function", ("gradient", "draws"): "_recorded_draws"}


def operator(*features: str) -> str:
    """The text that makes operators. Features: `gradient`, and with it `draws`, where NumPy or Python draws numbers."""
    from graphmend_codemod.rules.proofs.outlining.texts import chosen

    gradient = GRADIENT if "gradient" in features else ""
    text = OPERATOR.replace("{gradient}", gradient).replace("{autograd}", WITH_AUTOGRAD)
    text = chosen(text.replace("{draws}", DRAWS if "draws" in features else ""), *features)
    return text.replace("_recorded_operator", NAMES[features])
