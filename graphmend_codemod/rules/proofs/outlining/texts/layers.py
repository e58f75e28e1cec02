"""Code that may run layers or draw random numbers as one operator, and recurrent layers, in terms of `torch`."""

from __future__ import annotations

from graphmend_codemod.rules.proofs.outlining.texts.parts import (
    EAGER,
    GIVEN,
    PUT_TOGETHER,
    REGISTERED,
    TAKEN_APART,
    TAPES,
    WITH_AUTOGRAD,
)

PLAIN = '''\
@torch.compiler.assume_constant_result
def _holds_plain_parts(file: str, owner: torch.nn.Module, parts: tuple) -> bool:
    """True if a gradient may run these parts of a module again: no hooks, layers of this file, torch or within them
    of its package, and no `torch.func.grad` or the like around it."""
    packages = ("torch", file.partition(".")[0])
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    for name in parts:
        part = getattr(owner, name) if name else owner
        if isinstance(part, torch.nn.Module):
            layers = [part] if name else [part, *part.children()]
            while layers:
                layer = layers.pop()
                if type(layer).__module__.startswith("torch."):
                    layers.extend(layer.children())
                elif type(layer).__module__ != file:
                    return False
            for each in part.modules():
                hooked = each._backward_hooks or each._backward_pre_hooks or hasattr(each, "_is_replica")
                if torch.is_grad_enabled():
                    hooked = hooked or each._forward_hooks or each._forward_pre_hooks or "forward" in vars(each)
                if hooked or type(each).__module__.partition(".")[0] not in packages:
                    return False
            if any(type(each) is not torch.nn.Parameter for each in part.parameters()):
                return False
        elif type(part) not in (torch.nn.Parameter, torch.Tensor, bool, int, float, str, type(None)):
            return False
    return True'''

HOLDS_ONLY = '''\
@torch.compiler.assume_constant_result
def _holds_only(owner: torch.nn.Module, name: str, kind: type) -> bool:
    """True if all layers in `owner.name` are of exactly this class: known while tracing."""
    return all(type(each) is kind for each in getattr(owner, name).children())'''

FITS = (
    '''\
def _fits_an_operator(file: str, owner, parts: tuple, *given) -> bool:
    """True if an operator can take what is given, and what these parts of a module hold: known while tracing.

    `file` is the `__name__` of the file that calls this.
    """
'''
    + GIVEN
    + """\
        return False  # the operator finds the module by a number, which no other process knows, and needs data
    for group in groups:
        if not (all(type(each) in tensor for each in group) or all(type(each) in plain for each in group)):
            return False
    return _holds_plain_parts(file, owner, parts)"""
)

ONE_OPERATOR = (
    '''\
def _one_operator(*parts: str, shapes=None, nested=0, untraced: bool = False):
    """Make `code(owner, *given)` one operator for torch.compile, which does not look inside.

    `given` are tensors, lists or tuples of them, integers and constants; `parts` are the attributes of the module
    `owner` that `code` reads ("" for itself), and torch.compile cannot look at them where they are `untraced`.
    `shapes(owner, *given)` makes empty tensors like the results, in a list; `nested` puts these together, as in
    `(0, (1, 2))`. Without `shapes`, `code` changes the first tensor in place and returns it. A gradient takes what
    autograd kept of the call, or runs `code` again.
    """
    import contextlib
    import functools
    import itertools
    import operator
    import threading
    import types
    import weakref

    lock = vars(_one_operator).setdefault("lock", threading.RLock())
    simple = (int, float, bool, str, bytes, type(None), type, torch.dtype, torch.device, weakref.ref)
    simple = (*simple, types.BuiltinFunctionType)

    def is_simple(value, seen):  # nothing in it leads to a tensor or to a layer
        if isinstance(value, simple) or id(value) in seen:
            return True
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            return not value.__closure__ and not value.__defaults__ and not value.__kwdefaults__
        if isinstance(value, dict):
            return all(is_simple(each, seen) for each in value.values())
        if isinstance(value, (list, tuple, set, frozenset)):
            return all(is_simple(each, seen) for each in value)
        other = callable(value) or isinstance(value, (torch.Tensor, torch.nn.Module)) or not hasattr(value, "__dict__")
        return not other and all(is_simple(each, seen) for each in vars(value).values())

    def with_tensors(value, changed, made, seen):  # the same, but for tensors; LookupError if that cannot be known
        if isinstance(value, torch.Tensor):
            return changed.get(id(value), value)
        if isinstance(value, torch.nn.Module):
            if id(value) not in made:
                made[id(value)] = new = object.__new__(type(value))
                pairs = [(name, with_tensors(each, changed, made, seen)) for name, each in vars(value).items()]
                vars(new).update(pairs)
            return made[id(value)]
        if isinstance(value, dict) and value:
            new = value.copy()
            new.update((name, with_tensors(each, changed, made, seen)) for name, each in value.items())
            return new
        if type(value) in (list, tuple):
            return type(value)(with_tensors(each, changed, made, seen) for each in value)
        if is_simple(value, seen):
            return value
        raise LookupError

    def decorate(code):
        name, counted = _operator_name(code.__name__.strip("_"), code.__module__), itertools.count()
        owners, constants = weakref.WeakValueDictionary(), {}

        def tensors_of(owner):  # with their paths, first those that the owner holds itself
            values = {part: getattr(owner, part) if part else owner for part in parts}
            yield from ((part, value) for part, value in values.items() if isinstance(value, torch.Tensor))
            for part, value in values.items():
                yield from value.named_parameters(part) if isinstance(value, torch.nn.Module) else ()

        @torch.compiler.assume_constant_result
        def number_of(owner, others):  # another one for each call: equal calls are merged, and may draw random numbers
            number = next(counted)
            constants[number] = others
            if owner is not None:
                owners[number] = owner
            return number

        @torch.compiler.assume_constant_result
        def paths_of(owner):
            return tuple(path for path, _ in tensors_of(owner))

        @torch.compiler.assume_constant_result
        def untraced_tensors(owner):
            return [tensor for _, tensor in tensors_of(owner)]

        @torch.compiler.assume_constant_result
        def is_own(owner, path, tensor):
            return dict(tensors_of(owner))[path] is tensor

'''
    + PUT_TOGETHER
    + """\
            return tensors, sizes, floats, tuple(others), form

        def unpacked(tensors, sizes, floats, form, number):
            kinds = iter(floats), iter(constants[number]), tensors, iter(sizes)
"""
    + TAKEN_APART
    + EAGER
    + WITH_AUTOGRAD
    + TAPES
    + """\

        def around(device, autocast):
            return torch.autocast(device.type, autocast, autocast is not None, cache_enabled=False)

        def call(tensors, sizes, floats, form, number, autocast, again=False):
            owner, device, run, tensors = owners.get(number), tensors[0].device, eager(), iter(tensors)
            given = list(unpacked(tensors, sizes, floats, form, number))
            if shapes is None:
                given[0] = given[0].clone()
            held = [(path, new, own) for new, (path, own) in zip(tensors, tensors_of(owner))]
            if untraced and not again and any(new.data_ptr() != own.data_ptr() for _, new, own in held):
                text = "`{}` of `{}` was replaced after torch.compile had traced it: call `torch.compiler.reset()`"
                raise RuntimeError(text.format("`, `".join(parts), type(owner).__name__))
            with around(device, autocast) if again or autocast is not None else contextlib.nullcontext():
                if owner is None or (not again and all(new is own for _, new, own in held)):
                    return list(flat(run(owner, *given)))
                changed = {id(each): each.clone() for each in owner.buffers()} if again else {}
                changed.update((id(own), new) for _, new, own in held)
                try:  # other threads look at the module itself meanwhile
                    alike = with_tensors(owner, changed, {}, set())
                except LookupError:
                    alike = None
                if alike is not None:
                    return list(flat(run(alike, *given)))
                whole = torch.nn.ModuleDict({"owner": owner})
                whole.forward = functools.partial(run, owner)
                state = {f"owner.{path}": new for path, new, _ in held if "." not in path}
                for path, module in whole.named_modules():  # each once: torch does not put back one that it swaps twice
                    for each in (module.named_parameters, module.named_buffers):
                        places = each(path, recurse=False, remove_duplicate=False)
                        state.update((place, changed[id(own)]) for place, own in places if id(own) in changed)
                with lock:
                    return list(flat(torch.func.functional_call(whole, state, tuple(given), tie_weights=False)))

        def run(first, tensors, *rest):
            found = call(tensors, *rest)
            return found if shapes is None else list(separate(found, *tensors))

        def fake(first, tensors, sizes, floats, form, number, autocast):
            if shapes is None:
                return [torch.empty_like(tensors[0])]
            owner, rest = owners.get(number), iter(tensors)
            given = list(unpacked(rest, sizes, floats, form, number))
            held = {} if owner is None else {path: new for new, (path, _) in zip(rest, tensors_of(owner))}
            if any("." not in path for path in held):  # a stand-in, with the tensors of the graph
                values, owner = {**vars(owner), **held}, object.__new__(type(owner))
                vars(owner).update(values)
            with around(tensors[0].device, autocast):
                found = shapes(owner, *given)
            return [each.new_empty(each.shape) for each in found]

        def random_states(device):
            other = [] if device.type == "cpu" else [torch.get_device_module(device).get_rng_state(device)]
            return [torch.get_rng_state(), *other]

        def own_of(tensors, form, number):  # None where one of them is not that of the module
            several = [each if each >= 0 else -5 - each for each in form if each >= 0 or -(1 << 20) < each <= -5]
            count = form.count(-2) + sum(several)
            owner, own = owners.get(number), tensors[count:]
            held = tensors_of(owner) if owner is not None else ()
            return own if all(new is each for new, (_, each) in zip(own, held)) else None

        def run_trained(first, tensors, *rest):
            *rest, leaves = rest
            states, own = random_states(tensors[0].device), own_of(tensors, *rest[2:4])
            if own is None or not (leaves or any(each.requires_grad for each in own)):
                return run(first, tensors, *rest), [token_of(tensors, (), ()), *states]
            given = tensors[: len(tensors) - len(own)]
            given = [each.detach().requires_grad_(place in leaves) for place, each in enumerate(given)] + own
            found = with_autograd(call, given, *rest)
            results = [each.detach().contiguous().clone() for each in found]  # they may be written later
            return results, [token_of(tensors, given, found), *states]

        def fake_trained(first, tensors, *rest):
            states = [torch.zeros(1, dtype=torch.int64, device="cpu"), *random_states(tensors[0].device)]
            return fake(first, tensors, *rest[:-1]), [torch.empty(len(each), dtype=each.dtype) for each in states]

        def run_backward(first, tensors, sizes, floats, form, number, autocast, grads, states, wanted):
            def again(*chosen):
                changed = dict(zip(wanted, chosen))
                given = [changed.get(place, each) for place, each in enumerate(tensors)]
                found = call(given, sizes, floats, form, number, autocast, again=True)
                return tuple(each for each in found if each.is_floating_point() or each.is_complex())

            kept = tape_of(states[0], tensors)
            if kept[0] and all(kept[0][place].requires_grad for place in wanted):
                return list(separate(gradient_of(*kept, grads, wanted), *grads, *tensors))
            device, states = tensors[0].device, states[1:]
            other = [] if device.type == "cpu" else [device]
            with torch.random.fork_rng(other, device_type="cuda" if device.type == "cpu" else device.type):
                torch.set_rng_state(states[0])
                for state in states[1:]:
                    torch.get_device_module(device).set_rng_state(state, device)
                with torch.enable_grad():
                    vjp = getattr(code, "vjp", torch.func.vjp)
                    found = vjp(again, *[tensors[place] for place in wanted])[1](tuple(grads))
            return list(separate([each.detach() for each in found], *grads))

        def fake_backward(first, tensors, *rest):
            return [tensors[place].new_empty(tensors[place].shape) for place in rest[-1]]

        def define(name, rest_of_schema, run, fake):
            tags = [getattr(torch.Tag, tag, None) for tag in ("cudagraph_unsafe", "nondeterministic_seeded")]
            schema = "Tensor[] tensors, SymInt[] sizes, float[] floats, int[] form, int number, ScalarType? autocast"
            # Where a checkpoint is compiled, torch finds the device of its random numbers by a first tensor alone.
            schema = f"(Tensor first, {schema}{rest_of_schema}"
            torch.library.define(name, schema, tags=[tag for tag in tags if tag is not None])
"""
    + REGISTERED
    + """\

        def keep(ctx, inputs, output):
            _, tensors, *ctx.rest, leaves = inputs
            ctx.leaves = None if leaves else []
            ctx.count = len(tensors)
            ctx.smooth = [each.is_floating_point() or each.is_complex() for each in output[0]]
            ctx.save_for_backward(*tensors, *output[1])

        def differentiate(ctx, grads, _):
            grads = [each for each, smooth in zip(grads, ctx.smooth) if smooth]
            saved = ctx.saved_tensors  # once, for a checkpoint lets them be read once
            tensors, states = saved[: ctx.count], saved[ctx.count :]
            wanted = [place for place, each in enumerate(ctx.needs_input_grad[1]) if each]
            found = dict(zip(wanted, backward(tensors[0], tensors, *ctx.rest, grads, states, wanted)))
            numbers = [None if each else [] for each in ctx.rest[:3]]
            return None, [found.get(place) for place in range(ctx.count)], *numbers, None, None, ctx.leaves

        def refuse(ctx, *grads):  # torch would leave parts of it out
            raise RuntimeError(f"torch.compile has no gradient of a gradient for `{name}`")

        forward = define(name, ") -> Tensor[]", run, fake)
        trained = define(f"{name}_trained", ", int[] leaves) -> (Tensor[], Tensor[])", run_trained, fake_trained)
        more = ", Tensor[] grads, Tensor[] states, int[] wanted) -> Tensor[]"
        backward = define(f"{name}_backward", more, run_backward, fake_backward)
        torch.library.register_autograd(f"{name}_trained", differentiate, setup_context=keep)
        torch.library.register_autograd(f"{name}_backward", refuse)

        def outlined(owner, *given):
            tensors, sizes, floats, others, form = packed(given)
            leaves = [place for place, each in enumerate(tensors) if each.requires_grad]
            kind, paths = tensors[0].device.type, () if untraced else paths_of(owner)
            autocast = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
            if untraced:
                tensors += untraced_tensors(owner) if torch.is_grad_enabled() else []
            elif not torch.is_grad_enabled():
                layers = [path for path in paths if "." in path]
                if all(is_own(owner, path, operator.attrgetter(path)(owner)) for path in layers[:1] + layers[-1:]):
                    paths = [path for path in paths if "." not in path]  # the operator finds the others itself
            tensors += [operator.attrgetter(path)(owner) for path in paths]
            all_given = tensors[0], tensors, sizes, floats, form, number_of(owner, others), autocast
            found = trained(*all_given, leaves)[0] if torch.is_grad_enabled() else forward(*all_given)
            return put(found, nested[len(found)] if isinstance(nested, dict) else nested)

        outlined.code = code
        return outlined

    return decorate"""
)


RECURRENT = '''\
@torch.compiler.assume_constant_result
def _is_recurrent(owner: torch.nn.Module, name: str, kind: type, device: str) -> bool:
    """True for a layer of exactly this class, of any for `RNNBase`, that a gradient may run again: cuDNN keeps the
    state of dropout."""
    layer = getattr(owner, name)
    kinds = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN) if kind is torch.nn.RNNBase else (kind,)
    own = type(layer) in kinds and "forward" not in vars(layer)
    return own and (device == "cpu" or layer.dropout == 0)


@torch.compiler.assume_constant_result
def _number_of_layer(owner: torch.nn.Module, name: str, attribute: str):
    """`owner.name.attribute`, a number that the constructor of a recurrent layer was given."""
    return getattr(getattr(owner, name), attribute)


def _fits_recurrent(owner: torch.nn.Module, name: str, kind: type, x, *others) -> bool:
    """True if an operator can run the recurrent layer `name` on what is made of `x` and others: known while tracing."""
    if not isinstance(x, torch.Tensor) or x.device.type == "meta" or torch.is_autocast_enabled(x.device.type):
        return False  # a packed sequence, no data, or results of another dtype
    return _is_recurrent(owner, name, kind, x.device.type) and _fits_an_operator(__name__, owner, (name,), x, *others)


def _recurrent_shapes(layer: torch.nn.RNNBase, x: torch.Tensor) -> list:
    """Empty tensors like the results of a recurrent layer: for each step of `x` (*, features), and the last states."""
    directions, size = 2 if layer.bidirectional else 1, layer.proj_size or layer.hidden_size
    batch = x.shape[:-1][0 if layer.batch_first else 1 :][:1] if x.dim() == 3 else ()
    states = [size, layer.hidden_size] if isinstance(layer, torch.nn.LSTM) else [size]
    last = [x.new_empty((directions * layer.num_layers, *batch, each)) for each in states]
    return [x.new_empty((*x.shape[:-1], directions * size)), *last]'''

PACKED = '''\
def _packed_shapes(layer: torch.nn.RNNBase, x: torch.Tensor, lengths, steps: int, padded_first: bool) -> list:
    """Empty tensors like the results of a recurrent layer on packed sequences, padded again, and their lengths."""
    batch = lengths.shape[0] if isinstance(lengths, torch.Tensor) else len(lengths)
    padded = (batch, steps) if layer.batch_first else (steps, batch)
    out, *states = _recurrent_shapes(layer, x.new_empty((*padded, x.shape[-1])))
    out = out if layer.batch_first == padded_first else out.transpose(0, 1)
    return [out, *states, torch.empty(batch, dtype=torch.int64, device="cpu")]


def _with_own_gradient(code):
    """Let the gradient of `code` be what autograd computes: `torch.func` cannot look at packed sequences, and draws
    another mask for the dropout of a transposed tensor."""

    def vjp(function, *given):
        def backward(grads):
            with torch._C._PreserveDispatchKeyGuard(), torch.enable_grad():  # an operator runs without autograd
                for key in (torch._C.DispatchKey.AutogradFunctionality, torch._C.DispatchKey.ADInplaceOrView):
                    torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
                leaves = [each.detach().requires_grad_() for each in given]
                found = [pair for pair in zip(function(*leaves), grads) if pair[0].requires_grad]
                outputs, wanted = [each for each, _ in found], [each for _, each in found]
                made = torch.autograd.grad(outputs, leaves, wanted, allow_unused=True)
            return tuple(torch.zeros_like(old) if new is None else new for old, new in zip(given, made))

        return None, backward

    code.vjp = vjp
    return code


def _longest_in_graph(lengths) -> int:
    """The largest of these lengths in a form that torch.compile keeps in one graph."""
    if not isinstance(lengths, torch.Tensor):
        if not any(isinstance(each, torch.Tensor) for each in lengths):
            return max(lengths)
        lengths = torch.stack(lengths)
    return _number_in_graph(lengths.max().long())'''
