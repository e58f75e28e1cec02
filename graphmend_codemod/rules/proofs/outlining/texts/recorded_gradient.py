"""The part of operators of recorded runs that makes a gradient."""

from __future__ import annotations

from graphmend_codemod.rules.proofs.outlining.texts.parts import TAPES

GRADIENT = """
        def random_states(tensors):
            device = tensors[0].device
            other = [] if device.type == "cpu" else [torch.get_device_module(device).get_rng_state(device)]
            return [torch.get_rng_state(), *python_states(), *other]  #: draws
            return [torch.get_rng_state(), *other]  #: !draws
{draws}
{tapes}
        def taped(tensors, rest, leaves):  # what is given, and the results, with what autograd knows of them
            own = list(held(*unpacked(tensors, *rest[:-1]))) if held is not None else []
            given = tensors[: len(tensors) - len(own)]
            given = [each.detach().requires_grad_(place in leaves) for place, each in enumerate(given)]
            return given + own, with_autograd(call, given, *rest)

        def run_trained(first, tensors, *rest):
            *rest, leaves = rest
            states = random_states(tensors)
            given, found = taped(tensors, rest, leaves)
            results = [each.detach().contiguous().clone() for each in found]  # they may be written later
            return results, [token_of(tensors, given, found), *states]

        def fake_trained(first, tensors, *rest):
            states = [torch.zeros(1, dtype=torch.int64, device="cpu"), *random_states(tensors)]
            return fake(tensors, *rest[:-1]), [torch.empty(len(each), dtype=each.dtype) for each in states]

        def check_leaves(found, known):
            waiting = [each.grad_fn for each in found if each.grad_fn is not None]
            seen, known = set(waiting), set(map(id, known))
            while waiting:
                step = waiting.pop()
                following = step.next_functions
                leaf = None if following else getattr(step, "variable", None)
                if leaf is not None and id(leaf) not in known:
                    fail("uses a tensor that needs a gradient and that it is not given")
                for each, _ in following:
                    if each is not None and each not in seen:
                        seen.add(each)
                        waiting.append(each)

        def is_same(one, other):  # but for what a device sums in another order
            if one.shape != other.shape or not other.numel() or not other.is_floating_point():
                return torch.equal(one, other)
            largest = float(other.abs().nan_to_num(0, 0, 0).max())
            return torch.allclose(one, other, rtol=1e-2, atol=1e-2 * largest, equal_nan=True)

        def again(tensors, rest, states, results, wanted):
            device = tensors[0].device
            other = [] if device.type == "cpu" else [device]
            kind = "cuda" if device.type == "cpu" else device.type
            with torch.random.fork_rng(other, device_type=kind), drawing_again(*states[1:3]):  #: draws
            with torch.random.fork_rng(other, device_type=kind):  #: !draws
                torch.set_rng_state(states[0])
                for state in states[3:]:  #: draws
                for state in states[1:]:  #: !draws
                    torch.get_device_module(device).set_rng_state(state, device)
                given, found = taped(tensors, rest, wanted)
            if not all(is_same(one.detach(), other) for one, other in zip(found, results)):
                fail("gave other results when a gradient ran it again")
            return given, found

        def run_backward(tensors, *rest):
            *rest, grads, states, results, wanted = rest
            given, found = tape_of(states[0], tensors)
            if not given or any(not given[place].requires_grad for place in wanted):
                given, found = again(tensors, rest, states[1:], results, wanted)
            check_leaves(found, given)
            return [each.clone() for each in gradient_of(given, found, grads, wanted)]

        def fake_backward(tensors, *rest):
            return [torch.empty_like(tensors[place], memory_format=torch.contiguous_format) for place in rest[-1]]

        def keep(ctx, inputs, output):
            _, tensors, *ctx.rest, leaves = inputs
            ctx.leaves = None if leaves else []
            ctx.count = len(tensors)
            ctx.smooth = [each.is_floating_point() or each.is_complex() for each in output[0]]
            ctx.states = len(output[1])
            ctx.save_for_backward(*tensors, *output[1], *(each.clone() for each in output[0]))  # may be written later

        def differentiate(ctx, grads, _):
            grads = [each for each, smooth in zip(grads, ctx.smooth) if smooth]
            saved, end = list(ctx.saved_tensors), ctx.count + ctx.states
            tensors, states, results = saved[: ctx.count], saved[ctx.count : end], saved[end:]
            wanted = [place for place, each in enumerate(ctx.needs_input_grad[1]) if each]
            found = dict(zip(wanted, backward(tensors, *ctx.rest, grads, states, results, wanted)))
            numbers = [None if each else [] for each in ctx.rest[:3]]
            return None, [found.get(place) for place in range(ctx.count)], *numbers, None, None, ctx.leaves

        def refuse(ctx, *grads):  # torch would leave parts of it out
            raise RuntimeError(f"torch.compile has no gradient of a gradient for `{name}`")

        # Where a checkpoint is compiled, torch finds the device of its random numbers by a first tensor alone.
        more = f"(Tensor first, {taken}, int[] leaves) -> (Tensor[], Tensor[])"
        trained = define(f"{name}_trained", more, run_trained, fake_trained, "nondeterministic_seeded")
        more = f"({taken}, Tensor[] grads, Tensor[] states, Tensor[] results, int[] wanted) -> Tensor[]"
        backward = define(f"{name}_backward", more, run_backward, fake_backward)
        torch.library.register_autograd(f"{name}_trained", differentiate, setup_context=keep)
        torch.library.register_autograd(f"{name}_backward", refuse)
""".replace("{tapes}", TAPES)


DRAWS = """
        def python_states():  # of Python's generator and NumPy's own one, as whole numbers
            _, plain, gauss = random.getstate()
            kind, keys, place, cached, other = numpy.random.get_state()
            if kind != "MT19937":
                fail(f"draws with {kind}, of which a gradient cannot draw the same again")
            bits = struct.unpack("qq", struct.pack("dd", gauss or 0.0, other))
            rows = [*plain, gauss is not None, bits[0]], [*keys.tolist(), place, cached, bits[1]]
            return [torch.tensor([int(each) for each in row], device="cpu") for row in rows]

        @contextlib.contextmanager
        def drawing_again(plain, keys):
            (*plain, has_gauss, gauss), (*keys, place, cached, other) = plain.tolist(), keys.tolist()
            gauss, other = struct.unpack("dd", struct.pack("qq", gauss, other))
            before = random.getstate(), numpy.random.get_state()
            random.setstate((3, tuple(plain), gauss if has_gauss else None))
            numpy.random.set_state(("MT19937", keys, place, cached, other))
            try:
                yield
            finally:
                random.setstate(before[0])
                numpy.random.set_state(before[1])
"""
