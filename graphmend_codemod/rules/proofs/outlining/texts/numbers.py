"""Texts of the functions that a statement calls to keep a number or a size in the graph as a symbol.

Nothing is imported here: the rules that ask whether a function is one of these are on the path of the commit hook.
"""

SCHEMAS = {
    "_nonzero_as_operator": "(Tensor x) -> Tensor",
    "_repeats_as_operator": "(Tensor repeats) -> Tensor",
    "_unique_as_operator": (
        "(Tensor x, bool sorted, bool inverse, bool counts, int? dim, bool consecutive) -> (Tensor, Tensor, Tensor)"
    ),
    "_bincount_as_operator": "(Tensor x, Tensor? weights, SymInt minlength) -> Tensor",
    "_number_as_operator": "(Tensor x) -> SymInt",
    "_fraction_as_operator": "(Tensor x) -> (SymInt, SymInt, SymInt, SymInt)",
}
# `_number_fake` does without torch's `item_memo`, which belongs to one fake tensor: a second `detach()` has another,
# which Inductor merges with the first (an error), and with that of an input of the graph it finds no size for the
# gradient of what is made of it.
_TEXT = '''
{operator}
def _nonzero_as_operator(x: {torch}.Tensor) -> {torch}.Tensor:
    """`x.nonzero()`, which torch.compile calls as one operator: how many there are is a symbol in the graph."""
    return x.nonzero().contiguous()

@_nonzero_as_operator.register_fake
def _nonzero_fake(x):
    if any(type(each) is int and each == 0 for each in x.shape):  # Inductor looks nothing up in an empty tensor
        return x.new_empty((0, x.dim()), dtype={torch}.int64)
    if x.nonzero_memo is None:
        shapes = {torch}.library.get_ctx()._shape_env
        x.nonzero_memo = {torch}._library.fake_impl.allocate_size(shapes, 0, None)
    return x.new_empty((x.nonzero_memo, x.dim()), dtype={torch}.int64)

def _nonzero_in_graph(x):
    """`x.nonzero()` in a form that torch.compile keeps in one graph, if it is a tensor."""
    return _nonzero_as_operator(x) if type(x) in ({torch}.Tensor, {torch}.nn.Parameter) else x.nonzero()

def _places_in_graph(mask):
    """The indices that a boolean mask stands for, in a form that torch.compile keeps in one graph."""
    plain = type(mask) in ({torch}.Tensor, {torch}.nn.Parameter)
    if not plain or mask.dtype not in ({torch}.bool, {torch}.uint8) or mask.dim() == 0:
        return (mask,)
    return _nonzero_as_operator(mask).unbind(1)

def _masked_select_in_graph(x, mask):
    """`torch.masked_select(x, mask)` in a form that torch.compile keeps in one graph."""
    x, mask = {torch}.broadcast_tensors(x, mask)
    return x[_places_in_graph(mask)]

{operator}
def _repeats_as_operator(repeats: {torch}.Tensor) -> {torch}.Tensor:
    """Each index as often as `repeats` says: how many there are is a symbol in the graph of torch.compile."""
    return {torch}.repeat_interleave(repeats)

@_repeats_as_operator.register_fake
def _repeats_fake(repeats):
    if type(repeats.shape[0]) is int and repeats.shape[0] == 0:
        return repeats.new_empty((0,), dtype={torch}.int64)
    size = {torch}._library.fake_impl.allocate_size({torch}.library.get_ctx()._shape_env, 0, None)
    return repeats.new_empty((size,), dtype={torch}.int64)

def _repeated_in_graph(x, repeats, dim=None):
    """`torch.repeat_interleave(x, repeats, dim)` in a form that torch.compile keeps in one graph."""
    if type(repeats) not in ({torch}.Tensor, {torch}.nn.Parameter) or repeats.dim() > 1 or x.dim() == 0:
        return {torch}.repeat_interleave(x, repeats, dim)
    x, dim = (x.flatten(), 0) if dim is None else (x, dim)
    if repeats.dim() == 0 or (type(repeats.shape[0]) is int and repeats.shape[0] == 1):
        repeats = repeats.reshape(1).expand(x.shape[dim])
    elif repeats.shape[0] != x.shape[dim]:
        return {torch}.repeat_interleave(x, repeats, dim)
    return x.index_select(dim, _repeats_as_operator(repeats))

{operator}
def _unique_as_operator(x, sorted, inverse, counts, dim, consecutive):
    """What `torch.unique` gives: how many values there are is a symbol in the graph of torch.compile."""
    if consecutive:
        found = {torch}.unique_consecutive(x, return_inverse=inverse, return_counts=counts, dim=dim)
    else:
        found = {torch}.unique(x, sorted, return_inverse=inverse, return_counts=counts, dim=dim)
    values, *more = found if isinstance(found, tuple) else (found,)
    more = [more.pop(0) if asked else x.new_empty(0, dtype={torch}.int64) for asked in (inverse, counts)]
    return values.contiguous(), *more

@_unique_as_operator.register_fake
def _unique_fake(x, sorted, inverse, counts, dim, consecutive):
    empty = any(type(each) is int and each == 0 for each in x.shape)
    size = 0 if empty else {torch}._library.fake_impl.allocate_size({torch}.library.get_ctx()._shape_env, 0, None)
    shape, places = [size], list(x.shape)
    if dim is not None:
        shape, places = list(x.shape), [x.shape[dim]]
        shape[dim] = size
    found = (places if inverse else [0], [size] if counts else [0])
    return x.new_empty(shape), *(x.new_empty(each, dtype={torch}.int64) for each in found)

def _unique_in_graph(x, sorted=True, return_inverse=False, return_counts=False, dim=None, consecutive=False):
    """`torch.unique(x)` in a form that torch.compile keeps in one graph. Eager mode has no gradient for it."""
    plain = type(x) in ({torch}.Tensor, {torch}.nn.Parameter) and (dim is None or x.dim() > 0)
    plain = plain and {torch}.autograd.forward_ad._current_level < 0  # nor a derivative ahead
    if not plain or ({torch}.is_grad_enabled() and x.requires_grad):
        asked = {{"return_inverse": return_inverse, "return_counts": return_counts, "dim": dim}}
        return {torch}.unique_consecutive(x, **asked) if consecutive else {torch}.unique(x, sorted, **asked)
    found = _unique_as_operator(x, sorted, return_inverse, return_counts, dim, consecutive)
    asked = [each for each, is_asked in zip(found, (True, return_inverse, return_counts)) if is_asked]
    return asked[0] if len(asked) == 1 else tuple(asked)

def _unique_consecutive_in_graph(x, **asked):
    """`torch.unique_consecutive(x)` in a form that torch.compile keeps in one graph."""
    return _unique_in_graph(x, consecutive=True, **asked)

{operator}
def _bincount_as_operator(x, weights, minlength):
    """`torch.bincount(x)`: how long it is is a symbol in the graph of torch.compile."""
    return {torch}.bincount(x, weights, minlength)

@_bincount_as_operator.register_fake
def _bincount_fake(x, weights, minlength):
    if type(x.shape[0]) is int and x.shape[0] == 0:
        size = minlength
    else:
        least = minlength if type(minlength) is int else 0
        size = {torch}._library.fake_impl.allocate_size({torch}.library.get_ctx()._shape_env, least, None)
    if weights is None:
        return x.new_empty((size,), dtype={torch}.int64)
    return x.new_empty((size,), dtype={torch}.float32 if weights.dtype == {torch}.float32 else {torch}.float64)

def _bincount_in_graph(x, weights=None, minlength=0):
    """`torch.bincount(x)` in a form that torch.compile keeps in one graph. Eager mode has no gradient for it."""
    plain = type(x) in ({torch}.Tensor, {torch}.nn.Parameter) and x.dim() == 1
    plain = plain and {torch}.autograd.forward_ad._current_level < 0  # nor a derivative ahead
    if not plain or ({torch}.is_grad_enabled() and weights is not None and weights.requires_grad):
        return {torch}.bincount(x, weights, minlength)
    return _bincount_as_operator(x, weights, minlength)

{operator}
def _number_as_operator(x: {torch}.Tensor) -> int:
    """`int(x)`, which torch.compile calls as one operator: the number is a symbol in the graph."""
    return int(x)

@_number_as_operator.register_fake
def _number_fake(x):
    version = None if x.is_inference() else x._version
    place, memory = (str(x.storage_offset()), x.dtype, version, x.fake_mode.epoch), x.untyped_storage()
    if getattr(memory, "_number_read", (None, None))[0] != place:  # read twice, by aliases too, it gives one symbol
        memory._number_read = (place, {torch}.library.get_ctx()._shape_env.create_unbacked_symint())
    return memory._number_read[1]

def _number_in_graph(x):
    """`x.item()` of a whole number in a form that torch.compile keeps in one graph, and any other number as it is."""
    if type(x) not in ({torch}.Tensor, {torch}.nn.Parameter):
        return x.item() if hasattr(x, "item") else x
    if x.dtype == {torch}.bool or x.is_floating_point() or x.is_complex() or x.numel() != 1:
        return x.item()
    return _number_as_operator(x)

{operator}
def _fraction_as_operator(x: {torch}.Tensor) -> tuple:
    """Whole numbers that give `x.item()`, for a graph has symbols for those alone; the last two are for nan."""
    number = x.item()
    if number != number:
        return 1, 600, -1, 600
    if number in (float("inf"), -float("inf")):
        return (1 if number > 0 else -1), 600, 0, 0
    whole, below = number.as_integer_ratio()
    last = whole & -whole
    shift = last.bit_length() - below.bit_length() if whole else 0
    whole = whole // last if whole else 0
    return whole * 2 ** (shift % 2), shift // 2, 0, 0

@_fraction_as_operator.register_fake
def _fraction_fake(x):
    symbol = {torch}.library.get_ctx()._shape_env.create_unbacked_symint
    return symbol(), symbol(), symbol(), symbol()

def _fraction_in_graph(x):
    """`x.item()` in a form that torch.compile keeps in one graph, where it is a tensor of one real number."""
    if type(x) not in ({torch}.Tensor, {torch}.nn.Parameter):
        return x.item() if hasattr(x, "item") else x
    if x.dtype == {torch}.bool or x.is_complex() or x.numel() != 1:
        return x.item()
    if not x.is_floating_point():
        return _number_as_operator(x)
    whole, half, other, end = _fraction_as_operator(x.detach())
    scale, edge = 2.0**half, 2.0**end
    return whole * scale * scale + other * edge * edge

def _integer_in_graph(x):
    """`int(x)` in a form that torch.compile keeps in one graph, where it is a tensor of one number."""
    if type(x) not in ({torch}.Tensor, {torch}.nn.Parameter) or x.is_complex() or x.numel() != 1:
        return int(x)
    return _number_as_operator(x.detach())

def _numbers_in_graph(x):
    """`x.tolist()` of whole numbers in a form that torch.compile keeps in one graph."""
    if type(x) not in ({torch}.Tensor, {torch}.nn.Parameter) or x.dim() != 1:
        return x.tolist()
    return [_number_in_graph(each) for each in x.unbind(0)]
'''
TEXTS = {each.partition("def ")[2].partition("(")[0]: each for each in _TEXT.strip("\n").split("\n\n")}
"""The text of each function, by its name."""
HELPERS = frozenset(TEXTS)
"""Functions of the module that the rewritten statements call."""
KEPT = '''
{operator}
def {name}_as_operator({names}, iou_threshold, autocast):
    """How many boxes `{spelled}` keeps is a symbol in the graph."""
    if not autocast:
        return {spelled}({names}, iou_threshold)
    with {torch}.autocast(boxes.device.type):  # a graph runs without the one around it
        return {spelled}({names}, iou_threshold)
'''
KEPT_FAKE = """
@{name}_as_operator.register_fake
def {name}_fake({names}, iou_threshold, autocast):
    empty, shapes = type(boxes.shape[0]) is int and boxes.shape[0] == 0, {torch}.library.get_ctx()._shape_env
    size = 0 if empty else {torch}._library.fake_impl.allocate_size(shapes, 0, None)
    return boxes.new_empty((size,), dtype={torch}.int64)
"""
KEPT_IN_GRAPH = '''
def {name}_in_graph({names}, iou_threshold):
    """`{spelled}` in a form that torch.compile keeps in one graph."""
    autocast = {torch}.is_autocast_enabled(boxes.device.type)
    return {name}_as_operator({names}, iou_threshold, autocast)
'''


def needed(names: set[str]) -> set[str]:
    """These functions and those that they call; an operator needs what stands in for it while torch.compile traces."""
    found: set[str] = set()
    while names:
        found |= names
        called = {each for name in names for each in HELPERS if f"{each}(" in TEXTS[name]}
        names = (called | {name.replace("_as_operator", "_fake") for name in names}) - found
    return found
