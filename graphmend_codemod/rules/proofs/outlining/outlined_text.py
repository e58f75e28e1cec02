"""What outlining writes into a file once, whatever it outlines there: definitions as text, in terms of `torch`."""

from __future__ import annotations

PLAIN = '''\
@torch.compiler.assume_constant_result
def _holds_plain_parts(owner: torch.nn.Module, parts: tuple) -> bool:
    """True if a gradient may run these parts of a module again: no hooks for it, no layers of other packages."""
    packages = ("torch", __name__.partition(".")[0])
    for part in [getattr(owner, name) for name in parts]:
        if isinstance(part, torch.nn.Module):
            for each in part.modules():
                hooked = each._backward_hooks or each._backward_pre_hooks
                if hooked or type(each).__module__.partition(".")[0] not in packages:
                    return False
            if any(type(each) is not torch.nn.Parameter for each in part.parameters()):
                return False
        elif type(part) not in (torch.nn.Parameter, torch.Tensor, bool, int, float, str, type(None)):
            return False
    return True'''

FITS = '''\
def _fits_an_operator(owner: torch.nn.Module, parts: tuple, *given) -> bool:
    """True if an operator can take what is given, and what these parts of a module hold: known while tracing."""
    if torch.compiler.is_exporting() or given[0].is_meta:
        return False  # the operator finds the module by a number, which no other process knows, and needs data
    every = [one for each in given for one in (each if type(each) in (list, tuple) else [each])]
    plain = all(type(each) in (torch.Tensor, torch.nn.Parameter, int) for each in every)
    return plain and _holds_plain_parts(owner, parts)'''

ONE_OPERATOR = '''\
def _one_operator(*parts: str):
    """Make `loop(owner, result, *rest)` one operator for torch.compile, which does not look inside.

    `loop` changes the tensor `result` in place and returns it. `rest` are tensors, integers, and lists or tuples
    of them; `parts` are the attributes of the module `owner` that it reads. A gradient runs the loop again.
    """
    import contextlib
    import functools
    import itertools
    import operator
    import weakref

    def decorate(loop):
        name, counted = _operator_name(loop.__name__.strip("_")), itertools.count()
        numbers, owners = weakref.WeakKeyDictionary(), weakref.WeakValueDictionary()

        def tensors_of(owner):  # with their paths, first those that the owner holds itself
            values = {part: getattr(owner, part) for part in parts}
            yield from ((part, value) for part, value in values.items() if isinstance(value, torch.Tensor))
            for part, value in values.items():
                yield from value.named_parameters(part) if isinstance(value, torch.nn.Module) else ()

        @torch.compiler.assume_constant_result
        def number_of(owner):
            number = numbers.setdefault(owner, next(counted))
            owners[number] = owner
            return number

        @torch.compiler.assume_constant_result
        def paths_of(owner):
            return tuple(path for path, _ in tensors_of(owner))

        @torch.compiler.assume_constant_result
        def is_own(owner, path, tensor):
            return dict(tensors_of(owner))[path] is tensor

        def packed(given):
            tensors, sizes, form = [], [], []  # -1: an integer, -2: a tensor, others: a list or tuple of so many
            for each in given:
                if type(each) in (list, tuple):
                    tensors.extend(each)
                    form.append(len(each) if type(each) is list else -3 - len(each))
                else:
                    (tensors if isinstance(each, torch.Tensor) else sizes).append(each)
                    form.append(-2 if isinstance(each, torch.Tensor) else -1)
            return tensors, sizes, form

        def unpacked(tensors, sizes, form):
            for count in form:
                if count in (-1, -2):
                    yield next(sizes if count == -1 else tensors)
                else:
                    several = itertools.islice(tensors, count if count >= 0 else -3 - count)
                    yield list(several) if count >= 0 else tuple(several)

        def run(tensors, sizes, form, number, autocast, again=False):
            owner, tensors = owners[number], iter(tensors)
            result, *rest = unpacked(tensors, iter(sizes), form)
            given = (result.clone(), *rest)
            held = [(path, new, own) for new, (path, own) in zip(tensors, tensors_of(owner))]
            mode = contextlib.nullcontext()
            if again or autocast is not None:
                mode = torch.autocast(result.device.type, autocast, autocast is not None, cache_enabled=False)
            with mode:
                if not again and all(new is own for _, new, own in held):
                    return loop(owner, *given)
                whole = torch.nn.ModuleDict({"owner": owner})
                whole.forward = functools.partial(loop, owner)
                state = {path: each.clone() for path, each in whole.named_buffers()} if again else {}
                state.update((f"owner.{path}", new) for path, new, _ in held)
                return torch.func.functional_call(whole, state, given)

        def random_states(device):
            other = [] if device.type == "cpu" else [torch.get_device_module(device).get_rng_state(device)]
            return [torch.get_rng_state(), *other]

        def run_with_states(tensors, *rest):
            states = random_states(tensors[0].device)
            return run(tensors, *rest), states

        def fake_with_states(tensors, *_):
            states = random_states(tensors[0].device)
            return torch.empty_like(tensors[0]), [torch.empty(len(each), dtype=each.dtype) for each in states]

        def run_backward(tensors, sizes, form, number, autocast, grad, states, wanted):
            def again(*chosen):
                changed = dict(zip(wanted, chosen))
                given = [changed.get(place, each) for place, each in enumerate(tensors)]
                return run(given, sizes, form, number, autocast, again=True)

            device, found, taken = grad.device, [], {grad.untyped_storage().data_ptr()}
            other = [] if device.type == "cpu" else [device]
            with torch.random.fork_rng(other, device_type="cuda" if device.type == "cpu" else device.type):
                torch.set_rng_state(states[0])
                for state in states[1:]:
                    torch.get_device_module(device).set_rng_state(state, device)
                grads = torch.func.vjp(again, *[tensors[place] for place in wanted])[1](grad)
            for each in grads:  # an operator returns no two tensors of one memory
                each = each.contiguous()
                found.append(each.clone() if each.untyped_storage().data_ptr() in taken else each)
                taken.add(found[-1].untyped_storage().data_ptr())
            return found

        def fake_backward(tensors, *rest):
            return [tensors[place].new_empty(tensors[place].shape) for place in rest[-1]]

        def define(name, rest_of_schema, run, fake):
            tags = [getattr(torch.Tag, tag, None) for tag in ("cudagraph_unsafe", "nondeterministic_seeded")]
            schema = "(Tensor[] tensors, SymInt[] sizes, int[] form, int number, ScalarType? autocast" + rest_of_schema
            torch.library.define(name, schema, tags=[tag for tag in tags if tag is not None])
            torch.library.impl(name, "default", run)
            torch.library.register_fake(name, fake)
            space, _, short = name.partition("::")
            return getattr(getattr(torch.ops, space), short).default

        def keep(ctx, inputs, output):
            tensors, *ctx.rest = inputs
            ctx.count = len(tensors)
            ctx.save_for_backward(*tensors, *output[1])

        def differentiate(ctx, grad, _):
            tensors, states = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
            wanted = [place for place, each in enumerate(ctx.needs_input_grad[0]) if each]
            found = dict(zip(wanted, backward(tensors, *ctx.rest, grad, states, wanted)))
            numbers = [None if each else [] for each in ctx.rest[:2]]
            return [found.get(place) for place in range(ctx.count)], *numbers, None, None

        forward = define(name, ") -> Tensor", run, lambda tensors, *_: torch.empty_like(tensors[0]))
        trained = define(f"{name}_trained", ") -> (Tensor, Tensor[])", run_with_states, fake_with_states)
        more = ", Tensor grad, Tensor[] states, int[] wanted) -> Tensor[]"
        backward = define(f"{name}_backward", more, run_backward, fake_backward)
        torch.library.register_autograd(f"{name}_trained", differentiate, setup_context=keep)

        def outlined(owner, *given):
            tensors, sizes, form = packed(given)
            kind, paths = given[0].device.type, paths_of(owner)
            autocast = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
            if not torch.is_grad_enabled():
                layers = [path for path in paths if "." in path]
                if all(is_own(owner, path, operator.attrgetter(path)(owner)) for path in layers[:1] + layers[-1:]):
                    paths = [path for path in paths if "." not in path]  # the operator finds the others itself
            tensors += [operator.attrgetter(path)(owner) for path in paths]
            all_given = tensors, sizes, form, number_of(owner), autocast
            return trained(*all_given)[0] if torch.is_grad_enabled() else forward(*all_given)

        return outlined

    return decorate'''
