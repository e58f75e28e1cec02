"""What makes empty tensors like the results of a function, by running it on tensors without data."""

from __future__ import annotations

EXPLORED = '''\
def _shapes_of(code):
    """Make `code` give empty tensors like its results, in a list, for tracing.

    It runs on tensors without data, once for each way its tests of tensors can go, and for some numbers that it may
    read from them or rows that a mask may choose, those that stand in the code and sizes of what it is given among
    them. Where its results then differ in shape or dtype, or it asks for nothing like that, the graph breaks, and later
    on the code is traced as without an operator.
    """
    tests = (torch.Tensor.__bool__, torch.Tensor.is_nonzero, torch.Tensor.equal, torch.Tensor.allclose)
    tests = (*tests, torch.is_nonzero, torch.equal, torch.allclose)
    sized = ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount", "repeat_interleave")
    numbers = {torch.Tensor.__int__: int, torch.Tensor.__index__: int, torch.Tensor.__float__: float}

    class Answers(torch.overrides.TorchFunctionMode):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number, self.reads, self.keeps, self.answers, self.asked = number, False, False, [], 0

        def places(self, index):  # as many as are tried, in the place of those that a mask chooses
            if not isinstance(index, torch.Tensor) or index.dtype is not torch.bool or not index.dim():
                return [index]
            self.reads = True
            return [index.new_empty(self.count(index), dtype=torch.int64)] * index.dim()

        def count(self, mask):
            return max(0, min(self.number, mask.numel()))

        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function in tests:
                self.asked += 1
                self.answers += [False] * (self.asked - len(self.answers))
                return self.answers[self.asked - 1]
            if function in numbers:
                self.reads = True
                return numbers[function](self.number)
            if function is torch.Tensor.item:
                self.keeps = True
                number = args[0].reshape(())
                return number.to(torch.get_default_dtype()) if number.is_floating_point() else number
            if function in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
                index = [args[1]] if not isinstance(args[1], tuple) else args[1]
                args = (args[0], tuple(part for each in index for part in self.places(each)), *args[2:])
            name = getattr(function, "__name__", "")
            if "nonzero_as_operator" in name or (name in ("nonzero", "argwhere") and not kwargs):
                self.reads = True
                return args[0].new_empty((self.count(args[0]), args[0].dim()), dtype=torch.int64)
            if "number_as_operator" in name:
                self.reads = True
                return self.number
            if name in sized or (name == "where" and len(args) == 1 and not kwargs):
                raise NotImplementedError("data decides how long a result is")
            return function(*args, **(kwargs or {}))

        def forms(self, *given):  # of the results of one way through the code; None where it raises an error
            self.asked = 0
            try:
                with self:
                    found = code(*given)
            except Exception as error:
                place = error.__traceback__
                while place.tb_next is not None:
                    place = place.tb_next
                own = place.tb_frame.f_globals.get("__name__") == code.__module__
                if not (own and isinstance(error, (AssertionError, ValueError))) and self.number == 2:
                    raise
                return None
            if not all(isinstance(each, torch.Tensor) for each in found):
                raise NotImplementedError("it does not return tensors alone")
            if self.keeps and not all(each.dim() for each in found):
                raise NotImplementedError("it may return a number")
            return found

    def constants(function, classes, seen):  # whole numbers that it may compare with, and what it calls of its package
        seen.add(function)
        for compiled in (waiting := [function.__code__]):
            for each in compiled.co_consts:
                waiting += [each] if hasattr(each, "co_consts") else []
                yield from (n for n in (each if isinstance(each, tuple) else (each,)) if type(n) is int)
            for name in compiled.co_names:
                held = function.__globals__.get(name)
                classes += [held] if isinstance(held, type) else []
                for called in (held, *(getattr(each, name, None) for each in classes)):
                    package = called.__module__.split(".")[0] if hasattr(called, "__code__") else ""
                    if package == code.__module__.split(".")[0] and called not in seen:
                        yield from constants(called, classes, seen)

    def tried(given):
        sizes = [n for each in given if isinstance(each, torch.Tensor) for n in each.shape if type(n) is int]
        named = {*constants(code, [type(given[0])], set()), *sizes}
        return dict.fromkeys((2, 1, 0, 1000, -1, *sorted(n + d for n in named for d in (-1, 0, 1))))

    def explored(given):
        first, ways = None, 0
        for number in tried(given):
            run = Answers(number)
            while True:
                ways += 1
                found = run.forms(*given)
                forms = None if found is None else [(each.shape, each.dtype, each.device) for each in found]
                if first is not None and found is not None and forms != first[1]:
                    raise NotImplementedError("the shape or dtype of a result depends on data")
                first = first or (found and (found, forms))
                while run.answers and run.answers[-1]:
                    run.answers.pop()
                if ways > 300 or not run.answers:
                    break
                run.answers[-1] = True
            if ways > 300 or not first or not (run.asked or run.reads or run.keeps):
                raise NotImplementedError("it has too many ways, or none, or may be traced")
            if not run.reads:
                break
        return first[0]

    def shapes(*given):
        try:
            return explored(given)
        except Exception as error:
            failed.append(True)
            raise NotImplementedError(f"{code.__name__}: what it returns depends on data") from error

    def noted(found):  # where the operator runs between graphs, it is left out of later ones: the code is traced
        if failed:
            shapes.unknown[:] = [True]
        return found

    shapes.unknown, shapes.noted, failed = [], noted, []
    return shapes'''
