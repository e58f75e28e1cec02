"""Assignment problems as one operator, in terms of `torch`."""

from __future__ import annotations

OPERATOR = '''
{operator}
def _assignment_as_operator(cost: torch.Tensor, maximize: bool) -> tuple:
    """The rows and columns of an assignment problem, which torch.compile calls as one operator."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(cost, maximize)
    return torch.from_numpy(rows).contiguous(), torch.from_numpy(columns).contiguous()
'''
FAKE = """
@_assignment_as_operator.register_fake
def _assignment_fake(cost, maximize):
    rows = torch.empty(torch.sym_min(*cost.shape), dtype=torch.int64)
    return rows, torch.empty_like(rows)
"""
IN_GRAPH = '''
def _assignment_in_graph(cost_matrix, maximize=False):
    """`linear_sum_assignment` in a form that torch.compile keeps in one graph, where it takes what is given."""
    import numpy
    from scipy.optimize import linear_sum_assignment

    cost = torch.from_numpy(cost_matrix) if isinstance(cost_matrix, numpy.ndarray) else cost_matrix
    plain = type(cost) is torch.Tensor and not cost.requires_grad and cost.device.type == "cpu"
    if not plain or cost.dim() != 2 or type(maximize) is not bool:
        return linear_sum_assignment(cost_matrix, maximize)
    rows, columns = _assignment_as_operator(cost, maximize)
    return rows.numpy(), columns.numpy()
'''
STACKED = '''
def _stacked_in_graph(arrays):
    """`np.array(arrays)` of a list of arrays, which Dynamo reads back otherwise."""
    import numpy

    return numpy.stack(arrays) if arrays else numpy.array(arrays)
'''
