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
    tensors = []
    for each in given:
        if type(each) in (list, tuple):
            tensors.extend(each)
        elif type(each) is not int:
            tensors.append(each)
    plain = all(type(each) in (torch.Tensor, torch.nn.Parameter) for each in tensors)
    return plain and _holds_plain_parts(owner, parts)'''

ONE_OPERATOR = '''\
def _one_operator(*parts: str):
    """Make `loop(owner, result, *rest)` one operator for torch.compile, which does not look inside.

    `loop` changes the tensor `result` in place and returns it. `rest` are tensors, lists of tensors and integers, and
    `parts` are the attributes of the module `owner` that it reads. The gradient runs the loop again.
    """
    import weakref

    def decorate(loop):
        name, numbers = _operator_name(loop.__name__.strip("_")), iter(range(1 << 62))
        owners, known = weakref.WeakValueDictionary(), weakref.WeakKeyDictionary()
        tags = [getattr(torch.Tag, tag, None) for tag in ("cudagraph_unsafe", "nondeterministic_seeded")]
        options = {"mutates_args": (), "tags": tuple(tag for tag in tags if tag is not None)}

        class Owner(torch.nn.Module):
            def __init__(self, owner):
                super().__init__()
                self.owner = owner

            def forward(self, *given):
                return loop(self.owner, *given)

        def parameters_of(owner):
            found = {}
            for part in parts:
                value = getattr(owner, part)
                if isinstance(value, torch.nn.Module):
                    found.update(value.named_parameters(f"owner.{part}"))
                elif isinstance(value, torch.Tensor):
                    found[f"owner.{part}"] = value
            return found

        @torch.compiler.assume_constant_result
        def operator_number(owner):
            number = known[owner][0] if owner in known else next(numbers)
            owners[number], known[owner] = owner, (number, parameters_of(owner))
            return number

        @torch.compiler.assume_constant_result
        def paths_to_parameters(owner):
            return tuple(name.partition(".")[2] for name in parameters_of(owner))

        def run(result, tensors, sizes, form, parameters, number, autocast, again=False):
            owner, tensors, sizes, given = owners[number], iter(tensors), iter(sizes), [result.clone()]
            for each in form:  # -1: an integer, -2: a tensor, others: a list or tuple of so many
                many = [next(tensors) for _ in range(each if each >= 0 else -3 - each)]
                given.append(next(sizes) if each == -1 else next(tensors) if each == -2 else many)
                given[-1] = tuple(many) if each < -2 else given[-1]
            named = known[owner][1]
            own = all(one is other for one, other in zip(parameters, named.values()))
            with torch.autocast(result.device.type, autocast, autocast is not None, cache_enabled=False):
                if own and not again:
                    return loop(owner, *given)
                whole = Owner(owner)
                state = {key: each.clone() for key, each in whole.named_buffers()} if again else {}
                state.update(zip(named if own else parameters_of(owner), parameters))
                return torch.func.functional_call(whole, state, tuple(given))

        def states_of(device):
            other = [] if device.type == "cpu" else [torch.get_device_module(device).get_rng_state(device)]
            return [torch.get_rng_state(), *other]

        types = "Tensor result, Tensor[] tensors, SymInt[] sizes, int[] form, Tensor[] parameters, int number"
        types = f"{types}, ScalarType? autocast"

        @torch.library.custom_op(name, schema=f"({types}) -> (Tensor, Tensor[])", **options)
        def operator(result, *rest):
            states = states_of(result.device)
            return run(result, *rest), states

        @operator.register_fake
        def _(result, *rest):
            states = states_of(result.device)
            return torch.empty_like(result), [torch.empty(len(each), dtype=each.dtype) for each in states]

        more = "Tensor grad, Tensor[] states, int[] wanted"

        @torch.library.custom_op(f"{name}_backward", schema=f"({types}, {more}) -> Tensor[]", **options)
        def backward(result, tensors, sizes, form, parameters, number, autocast, grad, states, wanted):
            every, count, device = [result, *tensors, *parameters], len(tensors) + 1, result.device

            def again(*chosen):
                given = dict(zip(wanted, chosen))
                given = [given.get(place, each) for place, each in enumerate(every)]
                return run(given[0], given[1:count], sizes, form, given[count:], number, autocast, again=True)

            other = [] if device.type == "cpu" else [device]
            with torch.random.fork_rng(other, device_type="cuda" if device.type == "cpu" else device.type):
                torch.set_rng_state(states[0])
                for state in states[1:]:
                    torch.get_device_module(device).set_rng_state(state, device)
                derive = torch.func.vjp(again, *[every[place] for place in wanted])[1]
            found, taken = [], {grad.untyped_storage().data_ptr()}
            for each, given in zip(derive(grad), [every[place] for place in wanted]):
                alike = each.stride() == torch.empty_like(given, device="meta").stride()
                if not alike or each.untyped_storage().data_ptr() in taken:
                    each = torch.empty_like(given).copy_(each)
                taken.add(each.untyped_storage().data_ptr())
                found.append(each)
            return found

        @backward.register_fake
        def _(result, tensors, sizes, form, parameters, number, autocast, grad, states, wanted):
            every = [result, *tensors, *parameters]
            return [torch.empty_like(every[place]) for place in wanted]

        def keep(ctx, inputs, output):
            result, tensors, ctx.sizes, ctx.form, parameters, *ctx.rest = inputs
            ctx.counts = 1 + len(tensors), len(parameters)
            ctx.save_for_backward(result, *tensors, *parameters, *output[1])

        def differentiate(ctx, grad, _):
            count, saved = ctx.counts[0], list(ctx.saved_tensors)
            end = sum(ctx.counts)
            needed = [ctx.needs_input_grad[0], *ctx.needs_input_grad[1], *ctx.needs_input_grad[4]]
            wanted = [place for place, each in enumerate(needed) if each]
            given = saved[0], saved[1:count], ctx.sizes, ctx.form, saved[count:end], *ctx.rest
            found = dict(zip(wanted, backward(*given, grad, saved[end:], wanted)))
            grads = [found.get(place) for place in range(end)]
            numbers = [None if each else [] for each in (ctx.sizes, ctx.form)]
            return grads[0], grads[1:count], *numbers, grads[count:], None, None

        operator.register_autograd(differentiate, setup_context=keep)

        def outlined(owner, result, *given):
            tensors, sizes, form = [], [], []
            for each in given:
                if isinstance(each, torch.Tensor):
                    tensors.append(each)
                    form.append(-2)
                elif type(each) in (list, tuple):
                    tensors.extend(each)
                    form.append(len(each) if type(each) is list else -3 - len(each))
                else:
                    sizes.append(each)
                    form.append(-1)
            parameters = []
            for path in paths_to_parameters(owner):
                value = owner
                for name in path.split("."):
                    value = getattr(value, name)
                parameters.append(value)
            kind = result.device.type
            autocast = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
            return operator(result, tensors, sizes, form, parameters, operator_number(owner), autocast)[0]

        return outlined

    return decorate'''
