"""Boxes that torchvision's suppression keeps, as an operator: how many there are is a symbol of the graph."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.number_read import plain_number
from graphmend_codemod.rules.proofs.outlining.custom_op import NAMING, decorator
from graphmend_codemod.rules.proofs.outlining.texts.numbers import KEPT, KEPT_FAKE, KEPT_IN_GRAPH

_TENSORS = {"nms": ("boxes", "scores"), "batched_nms": ("boxes", "scores", "idxs")}
_HOMES = frozenset({"torchvision.ops", "torchvision.ops.boxes"})


class Kept(NamedTuple):
    """What is written in the place of a call, the functions that it needs, and what has to hold while it is traced."""

    text: str
    helpers: tuple[Helper, ...]
    conditions: tuple[str, ...]


def kept(site: Site, node: ast.expr) -> Kept | None:
    """`_nms_in_graph(boxes, scores, 0.5)` for `nms(boxes, scores, 0.5)`; None for any other call.

    The operator calls the function by the name that the file has for it, so what takes that name's place is called.
    """
    called = site.resolve(node.func) if isinstance(node, ast.Call) else None
    home, _, last = (called or "").rpartition(".")
    if not isinstance(node, ast.Call) or home not in _HOMES or last not in _TENSORS:
        return None
    spelled, names = dotted(node.func), _TENSORS[last]
    scope = site.evaluator.scope
    if not spelled or scope.is_local(spelled.partition(".")[0]):
        return None
    parameters = (*names, "iou_threshold")
    given: dict[str, ast.expr] = dict(zip(parameters, node.args, strict=False))
    given.update({word.arg: word.value for word in node.keywords if word.arg is not None})
    if len(given) != len(node.args) + len(node.keywords) or given.keys() != set(parameters):
        return None
    if not isinstance(given["iou_threshold"], (ast.Constant, ast.Name, ast.Attribute)):
        return None  # a header cannot ask twice for what a call gives
    name = "_" + spelled.replace(".", "_")
    words = {
        "name": name,
        "torch": site.torch,
        "spelled": spelled,
        "names": ", ".join(names),
    }
    schema = f"({', '.join(f'Tensor {each}' for each in names)}, float iou_threshold, bool autocast) -> Tensor"
    words["operator"] = "\n".join(decorator(site, f"{name.strip('_')}_as_operator", schema))
    operator, fake, called_as = (f"{name}_{part}" for part in ("as_operator", "fake", "in_graph"))
    helpers = (
        NAMING,
        Helper(operator, KEPT.format(**words).strip("\n"), after=("_operator_name",), shared=True),
        Helper(
            fake,
            KEPT_FAKE.format(**words).strip("\n"),
            after=(operator,),
            shared=True,
            since="_library.fake_impl.allocate_size",
        ),
        Helper(called_as, KEPT_IN_GRAPH.format(**words).strip("\n"), after=(operator,), shared=True),
    )
    threshold = given["iou_threshold"]
    asked = () if plain_number(site, threshold) is not None else (f"isinstance({site.text(threshold)}, (int, float))",)
    arguments = ", ".join(site.text(given[each]) for each in parameters)
    return Kept(f"{called_as}({arguments})", helpers, asked)
