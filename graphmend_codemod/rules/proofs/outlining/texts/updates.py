"""A method that changes tensors of its instance as one operator, in terms of `torch`."""

from __future__ import annotations

from graphmend_codemod.rules.proofs.outlining.texts.parts import EAGER

FITS = '''\
def _fits_an_update(owner, tensors: tuple, others: tuple, *given) -> bool:
    """True if an operator can change `tensors` of a module by what is given and `others`: known while tracing."""
    held = [getattr(owner, name) for name in tensors]
    tensor, plain = (torch.Tensor, torch.nn.Parameter), (int, float, bool, str, type(None), torch.dtype, torch.device)
    found = [*held, *(each for each in given if type(each) in tensor)]
    if torch.autograd.forward_ad._current_level >= 0:
        return False  # an operator would drop forward-mode derivatives
    if torch.compiler.is_exporting() or not all(type(each) in tensor and each.device.type != "meta" for each in found):
        return False  # the operator finds the module by a number, which no other process knows, and needs data
    if sum(each.numel() for each in held) > (2**18 if held[0].device.type == "cpu" else 2**24):
        return False  # it copies what it changes, which takes longer than a graph break
    rest = [each for each in given if type(each) not in tensor]
    for value in (getattr(owner, name) for name in others):
        rest.extend(value if type(value) in (list, tuple) else [value])
    if any(torch.is_autocast_enabled(each.device.type) for each in found):
        return False
    return all(type(each) in plain for each in rest) and _are_apart(owner, tensors)


@torch.compiler.assume_constant_result
def _are_apart(owner, names: tuple) -> bool:
    """True if no two of these tensors of a module share memory, nor one of them with another that it holds."""
    groups = (vars(owner), getattr(owner, "_buffers", {}), getattr(owner, "_parameters", {}))
    held = {id(each): each for group in groups for each in group.values() if isinstance(each, torch.Tensor)}
    places = [each.untyped_storage().data_ptr() for each in held.values()]
    return all(places.count(getattr(owner, name).untyped_storage().data_ptr()) == 1 for name in names)'''
COPIED = '''\
def _copied(x: torch.Tensor) -> torch.Tensor:
    """`x.clone()` as an operator: Inductor leaves a copy out, although the tensor changes before a gradient uses it."""
    return x.clone()'''
COPIED_FAKE = """\
@_copied.register_fake
def _copied_fake(x):
    return torch.empty_like(x)"""
UPDATE = (
    '''\
def _one_update(*names: str, changed: int):
    """Make `method(self, *given)` one operator for torch.compile: of the tensors `names` it changes the first ones."""
    import functools
    import itertools
    import weakref

    def decorate(method):
        counted, calls, numbers = itertools.count(), {{}}, weakref.WeakKeyDictionary()

        @torch.compiler.assume_constant_result
        def number_of(owner, others):
            number = numbers.setdefault(owner, {{}}).setdefault(repr(others), next(counted))
            calls[number] = weakref.ref(owner), others
            return number
'''
    + EAGER.replace("code", "method")
    + """
{operator}
        def operator(held, given, number):
            owner, others = calls[number]
            # What shares memory with a tensor that changes goes on sharing it: memory is copied, not each tensor.
            stores = {{each.data_ptr(): each for each in (each.untyped_storage() for each in held[:changed])}}
            copies = {{place: store.clone() for place, store in stores.items() if place}}

            def apart(x):
                copy = copies.get(x.untyped_storage().data_ptr())
                return x if copy is None else x.new_empty(0).set_(copy, x.storage_offset(), x.size(), x.stride())

            held = [apart(each) if each.numel() else each.clone() for each in held]
            tensors = iter([apart(each) for each in given])
            stand_in = object.__new__(type(owner()))  # with the tensors of the graph
            vars(stand_in).update({{**vars(owner()), **dict(zip(names, held))}})
            kinds, devices = [(each.shape, each.dtype) for each in held], [each.device for each in held]
            eager()(stand_in, *[next(tensors) if each is ... else each for each in others])
            if kinds != [(each.shape, each.dtype) for each in held]:
                raise RuntimeError("compiled code gives no tensor of a module another shape or dtype")
            return [each.to(device) for each, device in zip(held[:changed], devices)]

        @operator.register_fake
        def fake(held, given, number):
            return [torch.empty_like(each) for each in held[:changed]]

        def call(owner, *given):
            others = tuple(... if isinstance(each, torch.Tensor) else each for each in given)
            given = [each.detach() for each in given if isinstance(each, torch.Tensor)]
            held = [getattr(owner, name).detach() for name in names]
            for old, new in zip(held, operator(held, given, number_of(owner, others))):
                old.copy_(new)

        return call

    return decorate"""
)
