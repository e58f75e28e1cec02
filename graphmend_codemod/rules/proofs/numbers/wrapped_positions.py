"""A queue whose position is tested for its end: `if at + n >= size: queue[at:] = keys[: size - at]`.

What the branches write is played through for all small sizes. Where each row `i` of the keys goes to `(at + i) % size`,
or only those that fit do, the compile path writes that, with the position in its tensor.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import (
    elements_of,
    is_integer,
    is_literal,
    is_name,
    is_whole,
    names_beyond,
    written_integer,
)
from graphmend_codemod.analysis.scope import dotted, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.kept_positions import demand_other_memory

_ENDS: dict[str, Callable[[int, int], int]] = {
    "({moved}) % {size}": lambda moved, size: moved % size,
    "({moved}) * ({moved} < {size})": lambda moved, size: moved if moved < size else 0,
    "{moved} - {size} * ({moved} > {size})": lambda moved, size: moved - size if moved > size else moved,
}
"""Where a position may end that is moved on, as text and as a function."""
Affine = dict[str, int]
"""A sum of names with their factors; the empty name is 1."""
POSITION = "position"
_SIZES = range(1, 7)
_SAME_AXES = frozenset({"detach", "contiguous", "clone", "float", "half", "to"})
_COMPARES: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}


class Write(NamedTuple):
    """`queue[..., first:last] = rows[begin:end]`, the slices along one axis each; None is an open end."""

    queue: str
    axis: int
    rows: str
    bounds: tuple[Affine | None, Affine | None, Affine | None, Affine | None]


class Path(NamedTuple):
    """One way through the statements: what is asked for on it, what it writes, and where the position ends."""

    tests: tuple[tuple[Affine, type[ast.cmpop], Affine, bool], ...]
    numbers: Mapping[str, tuple[Affine, str]]
    views: Mapping[str, tuple[str, Affine | None, Affine | None]]
    writes: tuple[Write, ...]
    stored: tuple[Affine, str] | None


class Wrapped(NamedTuple):
    """What all ways through the statements do; `writes` have one entry for each queue."""

    writes: tuple[Write, ...]
    rows: str
    size: str
    fits: bool
    end: str
    below: bool


class Player:
    """Follows the statements behind `name = int(stored)` on all their ways."""

    def __init__(self, site: Site, name: str, stored: ast.expr) -> None:
        self._site, self._name = site, name
        self._stored = {site.text(stored), site.text(stored.value) if isinstance(stored, ast.Subscript) else ""}

    def wrapped(self, statements: Sequence[ast.stmt]) -> Wrapped:
        """What the statements do; NotProven where that is anything else than to fill a queue."""
        start = Path((), {self._name: ({POSITION: 1}, "")}, {}, (), None)
        paths = [start]
        for each in statements:
            paths = [after for path in paths for after in self._step(each, path)]
        names = sorted({name for path in paths for name in _names_of(path)} - {"", POSITION})
        # `self.queue.shape[0]` is the size that `self.size` says: the compile path asks for that.
        sizes = {f"{each.queue}.shape[{each.axis}]" for path in paths for each in path.writes} & {*names}
        names = [each for each in names if each not in sizes or len(names) == 2]
        if len(names) != 2 or not all(path.writes and path.stored is not None for path in paths):
            raise NotProven(f"`{self._name}` is no position that the rows of one batch move on in a queue of one size")
        places = {(each.queue, each.axis, each.rows): each for path in paths for each in path.writes}
        for rows, size in (names, reversed(names)):
            found = _played(paths, sorted(places), rows, size, sizes - {rows})
            if found is not None:
                return Wrapped(tuple(places[key] for key in sorted(places)), rows, size, *found)
        raise NotProven(f"the branches do not write the rows one after the other from `{self._name}` on")

    def _step(self, node: ast.stmt, path: Path) -> Iterator[Path]:
        if isinstance(node, ast.If):
            yield from self._branch(node, path)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield self._assigned(node.targets[0], node.value, path)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            read = ast.Name(node.target.id, ast.Load())
            yield self._assigned(node.target, ast.BinOp(read, node.op, node.value), path)
        elif (moved := self._filled(node)) is not None:
            yield path._replace(stored=self._number(moved, path))
        elif isinstance(node, ast.Pass):
            yield path
        else:
            raise NotProven(f"`{short(node)}` stands between the position and what is written at it")

    def _branch(self, node: ast.If, path: Path) -> Iterator[Path]:
        test = node.test
        known = isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _COMPARES
        if not known or not isinstance(test, ast.Compare):
            raise NotProven(f"`{short(test)}` does not compare the position with the size of the queue")
        left, right = self._plain(test.left, path), self._plain(test.comparators[0], path)
        for taken, body in ((True, node.body), (False, node.orelse)):
            paths = [path._replace(tests=(*path.tests, (left, type(test.ops[0]), right, taken)))]
            for each in body:
                paths = [after for before in paths for after in self._step(each, before)]
            yield from paths

    def _filled(self, node: ast.stmt) -> ast.expr | None:
        """`0` for `self.at.zero_()`, `n` for `self.at.fill_(n)`."""
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.keywords:
            return None
        if self._site.text(call.func.value) not in self._stored:
            return None
        if call.func.attr == "zero_" and not call.args:
            return ast.Constant(0)
        return call.args[0] if call.func.attr == "fill_" and len(call.args) == 1 else None

    def _assigned(self, target: ast.expr, value: ast.expr, path: Path) -> Path:
        if isinstance(target, ast.Subscript):
            first = is_integer(target.slice) and self._site.text(target.value) in self._stored
            whole = first and is_literal(target.slice, 0)
            if whole:
                return path._replace(stored=self._number(value, path))
            return path._replace(writes=(*path.writes, self._write(target, value, path)))
        if not isinstance(target, ast.Name):
            raise NotProven(f"`{short(target)}` is written between the position and what is written at it")
        if (view := self._view(value, path)) is not None and isinstance(value, ast.Subscript):
            if view[3]:
                raise NotProven(f"`{short(value)}` cuts the rows themselves")
            return path._replace(views={**path.views, target.id: view[:3]})
        return path._replace(numbers={**path.numbers, target.id: self._number(value, path)})

    def _number(self, node: ast.expr, path: Path) -> tuple[Affine, str]:
        """A sum, and the name of the number of which it is the remainder."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            size = self._plain(node.right, path)
            if len(size) == 1 and set(size.values()) == {1} and not size.keys() & {"", POSITION}:
                return self._plain(node.left, path), next(iter(size))
        if isinstance(node, ast.Name) and node.id in path.numbers:
            return path.numbers[node.id]
        return self._plain(node, path), ""

    def _plain(self, node: ast.expr, path: Path) -> Affine:
        if isinstance(node, ast.Name) and node.id in path.numbers:
            number, size = path.numbers[node.id]
            if size:
                raise NotProven(f"`{node.id}` is a remainder when it is used again")
            return number
        if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) <= 1:
            return {"": node.value} if node.value else {}
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            left, right = self._plain(node.left, path), self._plain(node.right, path)
            sign = 1 if isinstance(node.op, ast.Add) else -1
            both = {name: left.get(name, 0) + sign * right.get(name, 0) for name in {**left, **right}}
            return {name: factor for name, factor in both.items() if factor}
        if dotted(node) is not None or isinstance(node, ast.Subscript):
            if any(is_name(part, name) for part in walk(node) for name in (*path.numbers, *path.views)):
                raise NotProven(f"`{short(node)}` changes between the position and what is written at it")
            return {self._site.text(node): 1}
        raise NotProven(f"`{short(node)}` is no sum of the position, the size and a number of rows")

    def _bounds(self, node: ast.Slice, path: Path) -> tuple[Affine | None, Affine | None]:
        if node.step is not None:
            raise NotProven("a slice has a step")
        first = None if node.lower is None else self._plain(node.lower, path)
        return first, None if node.upper is None else self._plain(node.upper, path)

    def _write(self, target: ast.Subscript, value: ast.expr, path: Path) -> Write:
        parts = elements_of(target.slice)
        cut = [number for number, part in enumerate(parts) if not is_whole(part)]
        if len(cut) != 1 or not isinstance(parts[cut[0]], ast.Slice) or dotted(target.value) is None:
            raise NotProven(f"`{short(target)}` is no slice along one axis")
        axis, view = cut[0], self._view(value, path)
        if view is None or view[3] not in {axis, None}:
            raise NotProven(f"cannot infer which rows of `{short(value)}` are written")
        demand_other_memory(self._site, view[0].partition(".")[0], target.value)
        first, last = self._bounds(parts[axis], path)  # type: ignore[arg-type]
        return Write(self._site.text(target.value), axis, view[0], (first, last, view[1], view[2]))

    def _view(self, node: ast.expr, path: Path) -> tuple[str, Affine | None, Affine | None, int | None] | None:
        """All rows of a view, from where to where it has them, and along which axis, if it is cut."""
        if isinstance(node, ast.Name) and node.id not in path.numbers:
            base = path.views.get(node.id)
            return (*base, 0) if base is not None else (node.id, None, None, None)
        if isinstance(node, ast.Subscript):
            parts = elements_of(node.slice)
            cut = [number for number, part in enumerate(parts) if not is_whole(part)]
            inner = self._view(node.value, path)
            if len(cut) != 1 or not isinstance(parts[cut[0]], ast.Slice) or inner is None or inner[3] is not None:
                return None
            return (inner[0], *self._bounds(parts[cut[0]], path), cut[0])  # type: ignore[arg-type]
        turned, owner, called = "", node, ""
        if isinstance(node, ast.Attribute) and node.attr in {"T", "data"}:
            owner, called = node.value, node.attr
            turned = f".{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, called = node.func.value, node.func.attr
            turned = f".{called}({', '.join(map(self._site.text, [*node.args, *node.keywords]))})"
        inner = self._view(owner, path) if turned else None
        if inner is None:
            return None
        flips = called in {"T", "t"} or (called == "transpose" and isinstance(node, ast.Call) and _flips(node))
        if not flips and called != "data" and called not in _SAME_AXES:
            return None
        turned = ".T" if flips else turned
        axis = inner[3] if not flips or inner[3] is None else 1 - inner[3]
        return (f"{inner[0]}{turned}", inner[1], inner[2], axis)


def _flips(node: ast.Call) -> bool:
    """True for `transpose(0, 1)` and `transpose(-1, -2)`, in either order."""
    return not node.keywords and {*map(written_integer, node.args)} - {None} in ({0, 1}, {-1, -2})


def _names_of(path: Path) -> set[str]:
    sums = [side for left, _, right, _ in path.tests for side in (left, right)]
    sums += [bound for each in path.writes for bound in each.bounds if bound is not None]
    names = {name for each in sums for name in each}
    return names | ({*path.stored[0], path.stored[1]} if path.stored is not None else set())


def _played(
    paths: Sequence[Path], places: Sequence[tuple[str, int, str]], rows: str, size: str, sizes: set[str]
) -> tuple[bool, str, bool] | None:
    """Whether only rows that fit are written, where the position ends, and whether it must not begin at the size."""
    for below in (False, True):
        forms = {(fits, end) for fits in (False, True) for end in _ENDS}
        for length in _SIZES:
            for number in range(length + 1):
                for position in range(length + (not below)):
                    values = {"": 1, POSITION: position, rows: number} | dict.fromkeys([size, *sizes], length)
                    if any(path.stored is not None and not values.get(path.stored[1], 1) for path in paths):
                        return None  # the position goes round in the number of rows, which may be 0
                    forms &= set(_forms(paths, places, values, rows, size, forms))
        if forms:
            fits, end = min(forms, key=lambda form: (form[0], list(_ENDS).index(form[1])))
            return fits, end, below
    return None


def _forms(
    paths: Sequence[Path],
    places: Sequence[tuple[str, int, str]],
    values: Mapping[str, int],
    rows: str,
    size: str,
    forms: set[tuple[bool, str]],
) -> Iterator[tuple[bool, str]]:
    """The forms that say what the statements do with these numbers."""
    path = next((each for each in paths if all(_holds(test, values) for test in each.tests)), None)
    if path is not None:
        given, queue = range(values[rows]), range(values[size])
        done = [_filled_places(path, place, values, given, queue) for place in places]
        end = _end_of(path, values)
        yield from (form for form in forms if all(_same(form, each, end, values, rows, size) for each in done))


def _same(form: tuple[bool, str], done: object, end: int, values: Mapping[str, int], rows: str, size: str) -> bool:
    fits, ends = form
    position, number, length = values[POSITION], values[rows], values[size]
    moved = position + number
    wanted = {(position + row) % length: row for row in range(number) if not fits or position + row < length}
    return done == wanted and end == _ENDS[ends](moved, length)


def _holds(test: tuple[Affine, type[ast.cmpop], Affine, bool], values: Mapping[str, int]) -> bool:
    left, compared, right, taken = test
    return _COMPARES[compared](_sum(left, values), _sum(right, values)) is taken


def _sum(number: Affine, values: Mapping[str, int]) -> int:
    return sum(factor * values[name] for name, factor in number.items())


def _end_of(path: Path, values: Mapping[str, int]) -> int:
    assert path.stored is not None
    number, size = path.stored
    return _sum(number, values) % values[size] if size else _sum(number, values)


def _filled_places(
    path: Path, place: tuple[str, int, str], values: Mapping[str, int], rows: range, queue: range
) -> dict[int, int] | None:
    """The row that is written to each index of a queue; None where the lengths of a slice and its rows differ."""
    found: dict[int, int] = {}
    for write in path.writes:
        if (write.queue, write.axis, write.rows) != place:
            continue
        first, last, begin, end = (None if each is None else _sum(each, values) for each in write.bounds)
        given, to = rows[begin:end], queue[first:last]
        if len(given) != len(to):
            return None
        found |= dict(zip(to, given, strict=True))
    return found


def wrapped_path(
    site: Site, name: str, tensor: ast.expr, statements: Sequence[ast.stmt]
) -> tuple[list[str], list[str]]:
    """The conditions and the lines of a compile path in the place of the statements that read and use a position."""
    found = Player(site, name, tensor).wrapped(statements)
    _demand_unread(site, statements)
    torch, stored, rows, size = site.torch, site.text(tensor), found.rows, found.size
    tensors = [each for write in found.writes for each in (write.queue, _given(write).partition(".")[0])]
    conditions = [f"isinstance({each}, {torch}.Tensor)" for each in tensors]
    read = {f"{each}.shape[{write.axis}]" for write in found.writes for each in (write.queue, _given(write))}
    # What is read from the shape of a tensor is an integer.
    conditions += [f"isinstance({each}, int)" for each in (rows, size) if each not in read]
    conditions.append(f"0 <= {rows} <= {size}")
    row, place, fits = (site.free_name(each) for each in ("rows", "places", "fits"))
    ends = "<" if found.below else "<="
    inside = [f"({name} >= 0) & ({name} {ends} {size})", f'"`{name}` is not a position in the queue"']
    lines = [
        f"{name} = {stored}.reshape(()).clone()",
        site.call(f"{torch}._assert_async(", inside, deeper=1),
        f"{row} = {name} + {torch}.arange({rows}, device={found.writes[0].queue}.device)",
        f"{place} = {row} % {size}",
    ]
    for write in found.writes:
        conditions += filter(None, _asked(write, stored, rows, size))
        queue, keys = write.queue, f"{write.rows}.to({write.queue})"
        index = f"{':, ' * write.axis}{place}"
        if found.fits:
            # The other rows get what they have.
            lines.append(f"{fits} = ({row} < {size}).reshape(-1, *[1] * ({queue}.dim() - {write.axis + 1}))")
            keys = site.call(f"{torch}.where(", [fits, keys, f"{queue}[{index}]"], deeper=1)
        lines.append(f"{queue}[{index}] = {keys}")
    moved = f"{name} + {rows}"
    end = found.end.format(moved=moved, size=size)
    owner = tensor.value if isinstance(tensor, ast.Subscript) else tensor
    return list(dict.fromkeys(conditions)), [*lines, f"{site.text(owner)}.fill_({end})"]


def _given(write: Write) -> str:
    """The rows that are written, as they are before they are copied."""
    return write.rows.replace(".detach()", "").replace(".contiguous()", "").replace(".clone()", "")


def _asked(write: Write, stored: str, rows: str, size: str) -> Iterator[str]:
    """What has to hold for a queue and the rows that are written into it, which are tensors."""
    queue, given = write.queue, _given(write)
    yield f"0 not in {queue}.stride()"  # eager mode raises for rows that are one in memory
    yield f"{queue}.device == {stored}.device"
    yield f"{given.partition('.')[0]}.dim() == 2" if ".T" in given else f"{given}.dim() == {queue}.dim()"
    yield f"{queue}.dim() == 2" if ".T" in given else ""
    for tensor, length in ((queue, size), (given, rows)):
        known = f"{tensor}.shape[{write.axis}]"
        yield f"{known} == {length}" if known != length else ""


def _demand_unread(site: Site, statements: Sequence[ast.stmt]) -> None:
    """NotProven where something reads names behind the statements that these bind."""
    parts = [part for each in statements for part in walk(each) if isinstance(part, ast.Name)]
    bound = {part.id for part in parts if not isinstance(part.ctx, ast.Load)}
    end = statements[-1].end_lineno or 0
    loops = any(isinstance(each, (ast.For, ast.AsyncFor, ast.While)) for each in site.place.parents)
    for part in names_beyond(site.evaluator.scope.node, bound, parts):
        if isinstance(part.ctx, ast.Load) and (part.lineno > end or loops):
            raise NotProven(f"`{part.id}` is used in other places as well")
