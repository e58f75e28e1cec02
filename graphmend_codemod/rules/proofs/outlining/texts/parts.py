"""What operators of all kinds do with what they are given and return, as text for their definitions."""

from __future__ import annotations

GIVEN = """\
    tensor, plain = (torch.Tensor, torch.nn.Parameter), (int, float, bool, str, type(None), torch.dtype, torch.device)
    groups = [list(each) if type(each) in (list, tuple) else [each] for each in given]
    found = [each for group in groups for each in group if type(each) in tensor]
    ahead = torch.autograd.forward_ad._current_level >= 0  # an operator would drop forward-mode derivatives
    if ahead or not found or found[0].device.type == "meta" or torch.compiler.is_exporting():
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

REGISTERED = """\
            torch.library.impl(name, "default", run)
            torch.library.register_fake(name, fake)
            space, _, short = name.partition("::")
            return getattr(getattr(torch.ops, space), short).default
"""
"""How an operator gets its code, and what calls it."""
