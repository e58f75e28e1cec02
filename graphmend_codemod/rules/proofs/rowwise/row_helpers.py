"""Functions that a file gets where it works on all rows in the place of those that a mask chooses."""

from __future__ import annotations

from graphmend_codemod.core.findings import Helper
from graphmend_codemod.rules.framework.site import Site

_READ = '''
def _rows_under(mask, x):
    """The rows of `x`, with one that the mask chooses (else zeros) in the place of those that it does not."""
    x, mask = x.flatten(0, mask.dim() - 1), mask.flatten()
    one = x.index_select(0, mask.int().argmax(0, keepdim=True)).detach()
    mask = mask[(...,) + (None,) * (x.dim() - 1)]
    return torch.where(mask, x, torch.where(mask.any(), one, torch.zeros_like(one)))
'''
_WRITE = '''
def _write_under(mask, x, rows):
    """`x[mask] = ...` with the rows of which the mask chooses some."""
    chosen = mask[(...,) + (None,) * (x.dim() - mask.dim())]
    x.copy_(torch.where(chosen, rows.unflatten(0, mask.shape), x))
'''


_ELEMENTS = '''
def _elements_under(mask, x, index):
    """`x[mask, index]` for all rows, with the element of one that the mask chooses (else 0) in the place of others."""
    x, mask = x.flatten(0, mask.dim() - 1), mask.flatten()
    found = x[torch.arange(mask.shape[0], device=x.device), torch.where(mask, index, 0)]
    one = found.index_select(0, mask.int().argmax(0, keepdim=True)).detach()
    return torch.where(mask, found, torch.where(mask.any(), one, torch.zeros_like(one)))
'''
_PUT = '''
def _put_under(mask, x, index, value):
    """`x[mask, index] = value`, with an index and a value for each row or for all of them."""
    rows, chosen = x.flatten(0, mask.dim() - 1), mask.flatten()
    places = torch.arange(chosen.shape[0], device=x.device), torch.where(chosen, index, 0)
    kept = rows[places]
    value = value.to(x.dtype) if isinstance(value, torch.Tensor) else torch.empty_like(kept).fill_(value)
    x.copy_(rows.index_put(places, torch.where(chosen, value, kept)).unflatten(0, mask.shape))
'''
_ONE_ROW = '''
def _is_one_row(row, mask, x):
    """Whether a tensor may be added to each row of `x[mask]`: of the form, dtype and device of one."""
    if not isinstance(row, torch.Tensor) or (row.dtype, row.device) != (x.dtype, x.device):
        return False
    form = (1, *x.shape[mask.dim() :])
    return form[len(form) - row.dim() :] == tuple(row.shape)
'''
_SUM = '''
def _sum_under(mask, rows):
    """The sum of the rows that the mask chooses."""
    return torch.where(mask.flatten()[(...,) + (None,) * (rows.dim() - 1)], rows, 0).sum()
'''
_MEAN = '''
def _mean_under(mask, rows):
    """The mean of the rows that the mask chooses; half precision adds up in float32, as in eager mode."""
    if not (rows.is_floating_point() or rows.is_complex()):
        return rows.mean()
    wide = torch.float32 if rows.dtype in (torch.float16, torch.bfloat16) else rows.dtype
    chosen = torch.where(mask.flatten()[(...,) + (None,) * (rows.dim() - 1)], rows, 0)
    return (chosen.sum(dtype=wide) / (mask.sum() * (rows.numel() // mask.numel()))).to(rows.dtype)
'''
_HELPERS = {
    "_rows_under": _READ,
    "_write_under": _WRITE,
    "_elements_under": _ELEMENTS,
    "_put_under": _PUT,
    "_is_one_row": _ONE_ROW,
    "_sum_under": _SUM,
    "_mean_under": _MEAN,
}


def helpers_in(site: Site, body: str) -> tuple[Helper, ...]:
    """The helpers that the text of a compile path calls."""
    after = _definition_above(site, site.evaluator.scope.node.lineno)
    called = [name for name in _HELPERS if f"{name}(" in body]
    return tuple(
        Helper(name, text.strip("\n"), after=after, shared=True) for name, text in _HELPERS.items() if name in called
    )


def _definition_above(site: Site, line: int) -> tuple[str, ...]:
    """The top-level definition above the one that holds this line: behind it a helper stands next to what it serves."""
    summary = site.summary
    tops = [
        (each.line, each.qualname) for each in summary.functions if each.qualname and not (each.owner or each.outer)
    ]
    tops += [(each.line, each.qualname) for each in summary.classes if "." not in each.qualname]
    before = [name for start, name in sorted(tops) if start < line]
    return (before[-2],) if len(before) > 1 else ()
