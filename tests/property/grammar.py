"""The pieces from which modules are generated.

`{t}` and `{u}` stand for tensors, `{m}` for a bool tensor of their shape, `{n}` for a small number. Most pieces are
what models really hold, some are what breaks a careless rewrite: other dtypes and shapes, aliases, effects, exceptions.
"""

from __future__ import annotations

TENSOR_TESTS = """
{t}.sum() > {n}
{t}.sum() > {n}
{t}.sum() < {n}
({t} * {u}).sum() > {n}
({t} != {u}).any()
{t}.isinf().any()
{t}.min() < {n}
{t}.amax() > 9
{t}.mean() > self.limit
{t}.mean() > 0
{t}.mean() <= -self.limit
{t}.abs().max() > {n}
torch.isnan({t}).any()
torch.isinf({t}).any()
{t}.isnan().any()
torch.any({t} < {n})
({t} > {n}).any()
({t} > {n}).all()
(({t} > {n}) & ({u} < {n})).any()
not torch.isfinite({t}).all()
torch.isinf({t}).any() or torch.isnan({t}).any()
{m}.any()
{m}.all()
torch.any({m})
{m}.any().item()
{m}.sum() > 2
bool({m}.any())
bool(({t} > {n}).any())
torch.equal({t}, {u})
torch.allclose({t}, {u})
{t}.sum()
{t}.sum().item() > {n}
float({t}.sum()) > {n}
{t}.max() > {u}.min()
{t}.argmax() == 0
{t}[0, 0] > {n}
{t}.view(-1)[0] > {n}
{t}.norm() > {n}
{n} < {t}.sum() < 9
(total := {t}.sum()) > {n}
(self.gain > {n}).all()
self.scale.sum() > {n}
self.scale[0] > {n}
{t} > {n}
{t}.sum(dim=(0, 1), keepdim=True) > {n}
{t}.sum().reshape(1) > {n}
{t}.int().sum() % 2 == 0
squash({t}).sum() > {n}
torch.rand(()) > 0.5
{m}.byte().any()
not {m}.to(torch.uint8).all()
(({t} > {n}).byte() * 2).any()
{m}.byte().max()
torch.is_nonzero({t}.sum())
{t}.allclose({u})
""".strip().splitlines()

RARE_TESTS = """
({t} > 50).any()
{t}.sum() > 99
{t}.abs().max() > 1e3
torch.isnan({t}).any()
torch.isinf({t}).any() or {t}.isnan().any()
{t}.min() < -99
({t} != {t}).any()
not torch.equal({t}, {t})
{m}.sum() > 99
(({t} < -50) | ({t} > 50)).any()
""".strip().splitlines()

STATIC_TESTS = """
self.training
{t}.dtype == torch.float16
{t}.dtype == torch.float32
{t}.dtype in (torch.float16, torch.bfloat16)
{t}.dim() == 2
{t}.shape[0] > 1
{t}.size(-1) == 4
{t}.requires_grad
{t}.is_floating_point()
torch.is_grad_enabled()
self.limit > 0
flag
len(sizes) > 1
isinstance({t}, torch.Tensor)
mask is not None
self.last is None
self.count < 2
""".strip().splitlines()

VALUES = """
{t} * 2.0
{t} * 2
{t} + 1
{t} - 0.5
{t} / 2
-{t}
{t} - {u}
{t} + {u}
torch.clamp({t}, max=0.5)
torch.clamp({t}, min=-1.0, max=1.0)
{t}.clamp(min=0)
torch.relu({t})
F.relu({t})
{t}.tanh()
{t}.sigmoid()
{t}.abs()
{t}.clone()
torch.zeros_like({t})
torch.ones_like({t})
torch.full_like({t}, {n})
torch.nan_to_num({t})
{t}.masked_fill({m}, 0.0)
torch.where({t} > 0, {t}, {u})
{t}.softmax(dim=-1)
{t}
{u}
""".strip().splitlines()

OWN_TENSORS = """
self.norm({t})
self.norm({t})
self.linear({t})
torch.relu(self.linear({t}))
{t}.float() * 2.0
self.bn({t})
torch.sigmoid({t})
self.norm({t}) + self.norm({u})
torch.zeros(2, 4) + {t}
self.norm({t}).transpose(0, 1).contiguous().t()
""".strip().splitlines()

REFERENCES = (
    ("kept = [{t}]", "kept[0]"),
    ("kept = []\nkept.append({t})", "kept[-1]"),
    ("peek = {{'one': ({t}, 1)}}", "peek['one'][0]"),
    ("part = {t}.view(-1)", "part"),
    ("part = {t}.t()", "part"),
    ("part = {t}[0]", "part"),
    ("part = {t}.detach()", "part"),
    ("twin = {t}", "twin"),
    ("twin, _ = {t}, 1", "twin"),
    ("seen = lambda: {t}", "seen()"),
    ("self.last = {t}", ""),
    ("history.append({t})", ""),
    ("{t}.kept = {t}", ""),
)
"""Ways to refer to `{t}`, and an expression that shows later what the reference holds."""

HARD_VALUES = """
{t} * {u}
{t} / {u}
{t} * {t}.sum()
{t} * self.gain
{t} + self.scale
{t}.sqrt()
{t}.exp()
{t}.log()
{t} ** 2
{t} ** 0.5
1 / {t}
{t} // 2
{t} % 2
{t}.detach()
{t}.contiguous()
{t}.view({t}.shape)
{t}.reshape(-1)
{t}.t()
{t}[:, :2]
{t}[0]
{t}.sum()
{t}.mean(dim=-1, keepdim=True)
{t}.expand(2, 4)
{t}.unsqueeze(0)
torch.cat([{t}, {u}])
torch.stack([{t}, {u}]).sum(0)
{t}.float()
{t}.half()
{t}.double()
{t}.long()
{t}.to({u}.dtype)
{t}.type_as(x)
{t} > 0
F.gelu({t})
self.linear({t})
self.norm({t})
self.bn({t})
self.drop({t})
self.limited({t})
squash({t})
torch.rand_like({t})
F.dropout({t}, 0.5, self.training)
torch.zeros(2, 4)
torch.zeros({t}.shape, dtype={t}.dtype)
torch.zeros(())
torch.tensor({n})
{t}.add_(1)
{t}.clamp_(max=0.5)
{t}.data
np.float64(2.0) * {t}
F.silu({t}, inplace=True)
F.relu({t}, True)
F.leaky_relu({t}, 0.1, True)
torch.add({t}, 1.0, out={t})
torch.clamp({t}, max=0.5, out={t})
torch.nan_to_num_({t})
F.dropout({t}, 0.5, False)
torch.narrow({t}, 1, 0, 4)
{t}.swapaxes(0, 1).movedim(0, 1)
{t}.type_as({t})
{t}.unbind(0)[0]
{t} * 1e999
{t} / 1e-50
{t} * BIG
{t}.rsqrt()
torch.complex({t}, {u}).real
{t}.to(torch.complex64)
{t}.index_select(0, torch.tensor([1, 0]))
{t} if flag else {u}
(lambda v: v + 1)({t})
0.0
None
""".strip().splitlines()

EFFECTS = """
{t}.add_(1)
{t}.mul_(0.5)
{t} += 1
{t} *= 2
{t}[0] = 1.0
{t}[{m}] = 0.0
{t}.masked_fill_({m}, 0.0)
self.count += 1
self.last = {t}
self.last = {t}.detach()
self.scale = self.scale + 1
self.scale.add_(1)
self.gain.data.mul_(0.5)
history.append({t}.shape[0])
history.append({t})
torch.rand(1)
np.random.rand()
{t}.requires_grad_({t}.is_floating_point())
torch.relu_({t})
torch.mul({t}, 2.0, out={t})
torch.set_grad_enabled(not torch.is_grad_enabled()); torch.set_grad_enabled(not torch.is_grad_enabled())
{t}.register_hook(lambda g: g * 2) if {t}.requires_grad else None
F.silu({t}, inplace=True)
""".strip().splitlines()

BINDINGS = """
{new} = {t}
{new} = {t}.view(-1)
{new} = {t}[0]
{new} = {t}.t()
{new} = {t}.detach()
{new}, other = {t}, {u}
{new} = [{t}, {u}][0]
{new} = {t}.view(2, -1)
kept = [{t}]
kept = {{"one": {t}}}
total = {t}.sum()
{new}: torch.Tensor = {t} * 1
{new} = peek = {t}
""".strip().splitlines()

MESSAGES = """
logger.warning("be careful")
logger.info("one\\n" "two")
logger.warning("%s of %d", self.__class__.__name__, 3)
logger.warning(f"limit {{self.limit}}")
logger.warning(f"rows {{{t}.shape[0]}}")
logger.debug("shape %s", {t}.shape)
logger.info(f"mean {{{t}.mean()}}")
logger.warning("tensor %s", {t})
logger.log(logging.INFO, "level")
logging.warning("root")
logging.getLogger(__name__).info("inline")
warnings.warn("old", FutureWarning)
warnings.warn("old", stacklevel=2)
warnings.warn(f"rows {{{t}.shape[0]}}")
warnings.warn(message="named", category=DeprecationWarning)
print("here")
print("shape", {t}.shape)
print({t}.sum(), end="")
print(f"{{{t}.mean().item():.2f}}")
tell("only once")
logger.warning("called %d", len(history))
logger.warning("drawn %s", torch.rand(1))
logger.info("popped %s", history.pop() if history else None)
""".strip().splitlines()

ERRORS = """
raise ValueError("bad values")
raise ValueError
raise ValueError(f"bad values of shape {{{t}.shape}}")
raise ValueError(f"bad sum {{{t}.sum()}}")
raise ValueError("bad " + str(self.limit))
raise RuntimeError("bad %s" % {t}.dtype)
raise TypeError("a", "b")
raise ValueError("bad") from None
raise AssertionError("bad")
raise ValueError({t}.max().item())
""".strip().splitlines()

ASSERTIONS = """
assert {c}, "constant"
assert {c}, f"shape {{{t}.shape}}"
assert {c}, f"sum {{{t}.sum()}}"
assert {c}
assert {c}, ("a", {t}.dim())
""".strip().splitlines()

MASKED_WRITES = """
{a} = {a}.masked_fill({m}, {f})
{a} = {a}.masked_fill({m}, {f})
{a} = torch.masked_fill({a}, {m}, {f})
{a} = torch.where({m}, {f}, {a})
{a} = torch.where({m}, torch.zeros_like({a}), {a})
{a}.masked_fill_({m}, {f})
{a}[{m}] = {f}
{a} = {a}.masked_fill(~{m}, {f})
{a} = {a}.masked_fill({m}[0], {f})
{a} = {a} * ~{m}
{a}[{m}] += 1
""".strip().splitlines()

MASK_TESTS = """
{m}.any()
{m}.any()
torch.any({m})
{m}.any().item()
bool({m}.any())
{m}.sum() > 0
{m}.sum()
{m}.any() and self.training
{m} is not None and {m}.any()
not {m}.any()
{m}.all()
""".strip().splitlines()

FILLS = (
    "0.0",
    "0.0",
    "float('-inf')",
    "-1",
    "torch.finfo({a}.dtype).min",
    "{a}.min()",
    "torch.tensor(0.5)",
    "self.limit",
)

OVERFLOW_TESTS = """
torch.isinf({a}).any()
torch.isinf({a}).any() or torch.isnan({a}).any()
(torch.isinf({a}).any() or torch.isnan({a}).any())
not torch.isfinite({a}).all()
{a}.isinf().any()
""".strip().splitlines()

OVERFLOW_STATIC = (
    "{a}.dtype == torch.float16 and",
    "{a}.dtype == torch.float16 and",
    "{a}.dtype == torch.float32 and",
    "self.limit > 0 and",
    "",
)

OVERFLOW_BODIES = (
    "clamp_value = torch.finfo({a}.dtype).max - 1000\n{a} = torch.clamp({a}, min=-clamp_value, max=clamp_value)",
    "clamp_value = torch.finfo({a}.dtype).max\n{a} = {a}.clamp(-clamp_value, clamp_value)",
    "{a} = torch.nan_to_num({a})",
    "{a} = torch.clamp({a}, min=-1e4, max=1e4)",
    "clamp_value = torch.where(torch.isinf({a}).any(), 100.0, 200.0)\n{a} = torch.clamp({a}, max=clamp_value)",
)
