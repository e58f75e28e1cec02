"""What operators of all kinds do with what they are given and return, as text for their definitions."""

from __future__ import annotations

GIVEN = """\
    tensor, plain = (torch.Tensor, torch.nn.Parameter), (int, float, bool, str, type(None), torch.dtype, torch.device)
    groups = [list(each) if type(each) in (list, tuple) else [each] for each in given]
    found = [each for group in groups for each in group if type(each) in tensor]
    ask = getattr(torch.fx.experimental.symbolic_shapes, "guard_or_false", bool)  # no operator takes symbols of floats
    floats = [each for group in groups for each in group if type(each) is float]
    known = all(ask(each > 0) or ask(each <= 0) or ask(each != each) for each in floats)
    ahead = torch.autograd.forward_ad._current_level >= 0  # an operator would drop forward-mode derivatives
    if ahead or not known or not found or found[0].device.type == "meta" or torch.compiler.is_exporting():
"""
"""The first lines of a test of whether an operator can take what it is given."""

PUT_TOGETHER = """\
        def packed(given):
            tensors, sizes, floats, others, form = [], [], [], [], []
            for each in given:  # -1: an integer, -2: a tensor, -3: a constant, -4: a float, others: several of these
                if isinstance(each, torch.Tensor):
                    tensors.append(each)
                    form.append(-2)
                elif type(each) in (int, float):
                    (sizes if type(each) is int else floats).append(each)
                    form.append(-1 if type(each) is int else -4)
                elif type(each) in (list, tuple) and all(isinstance(one, torch.Tensor) for one in each):
                    tensors.extend(each)
                    form.append(len(each) if type(each) is list else -5 - len(each))
                elif type(each) is list and all(type(one) is int for one in each):
                    sizes.extend(each)
                    form.append(-(1 << 20) - len(each))
                else:
                    others.append(each)
                    form.append(-3)
"""
"""How what is given becomes arguments that torch has types for."""

TAKEN_APART = """\
            for count in form:
                if -5 < count < 0:
                    yield next(kinds[count + 4])
                elif count <= -(1 << 20):
                    yield list(itertools.islice(kinds[3], -(1 << 20) - count))
                else:
                    several = itertools.islice(tensors, count if count >= 0 else -5 - count)
                    yield list(several) if count >= 0 else tuple(several)

        def flat(found):
            for each in found if isinstance(found, (list, tuple)) else [found]:
                yield from flat(each) if isinstance(each, (list, tuple)) else [each]

        def put(found, way):
            return tuple(put(found, each) for each in way) if isinstance(way, tuple) else found[way]

        def separate(found, *others):  # an operator returns no two tensors of one memory
            taken = {each.untyped_storage().data_ptr() for each in others}
            for each in found:
                each = each.contiguous()
                each = each.clone() if each.untyped_storage().data_ptr() in taken else each
                taken.add(each.untyped_storage().data_ptr())
                yield each.new_empty(0).set_(each.detach()) if each._is_view() else each  # a view is not to be written
"""
"""How the function gets it back, and how its results are put together; without its `def`, which differ."""

EAGER = """\

        @functools.cache
        def disabled():
            return torch.compiler.disable(code)

        def eager():  # where the graph broke at the operator, Dynamo would go on inside of it
            asked = getattr(torch._C._dynamo.eval_frame, "get_eval_frame_callback", None)
            return code if asked is not None and asked() is None else disabled()
"""
"""The function as eager mode runs it. The wrapper that keeps Dynamo off takes longer than all else an operator does."""

WITH_AUTOGRAD = """\

        def with_autograd(run, *given):  # an operator runs without it
            with torch._C._PreserveDispatchKeyGuard(), torch.enable_grad():
                for key in (torch._C.DispatchKey.AutogradFunctionality, torch._C.DispatchKey.ADInplaceOrView):
                    torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
                return run(*given)
"""
"""How an operator lets autograd look at what it runs."""

TAPES = """\

        tapes, tokens = {}, itertools.count()

        def token_of(tensors, given, found):  # until a gradient is computed, or the token is gone, which autograd holds
            number = next(tokens)
            token = torch.full((1,), number, dtype=torch.int64, device="cpu")
            forget = weakref.ref(token, lambda _: tapes.pop(number, None))
            tapes[number] = [each.data_ptr() for each in tensors], given, found, forget
            return token

        def tape_of(token, tensors):  # nothing for a second gradient
            places, given, found, _ = tapes.pop(int(token), (None, (), (), None))
            # Where a tensor was computed again for the gradient, the memory of the first one may be written by now.
            return (given, found) if places == [each.data_ptr() for each in tensors] else ((), ())

        def gradient_of(given, found, grads, wanted):
            smooth = [each for each in found if each.is_floating_point() or each.is_complex()]
            pairs = [pair for pair in zip(smooth, grads) if pair[0].requires_grad]
            leaves = [given[place] for place in wanted]
            outputs, grads = [each for each, _ in pairs], [each for _, each in pairs]
            hooks = [(each, each._backward_hooks) for each in leaves if each._backward_hooks]
            made = [None] * len(leaves)
            try:
                for each, _ in hooks:  # they run where the gradient is added to that of a parameter
                    each._backward_hooks = None
                if pairs:
                    made = with_autograd(lambda: torch.autograd.grad(outputs, leaves, grads, allow_unused=True))
            finally:
                for each, hook in hooks:
                    each._backward_hooks = hook
            known, results = set(), []
            for leaf, each in zip(leaves, made):  # a parameter that is given twice has its gradient once
                repeated = each is None or id(leaf) in known
                results.append(leaf.new_zeros(leaf.shape) if repeated else each.contiguous())
                known.add(id(leaf))
            return results
"""
"""What autograd knows of a call, for its gradient."""

REGISTERED = """\
            torch.library.impl(name, "default", run)
            torch.library.register_fake(name, fake)
            space, _, short = name.partition("::")
            return getattr(getattr(torch.ops, space), short).default
"""
"""How an operator gets its code, and what calls it."""
