"""Layers as authors of seven fields write them: quantizers, routers, retrieval, tables, policies, flows and adapters."""

from tests.adversarial.case import IMPORTS, Group

_X = "torch.linspace(-2, 3, 12).reshape(3, 4)"
_ONE = "torch.linspace(-1, 1, 4).reshape(1, 4)"
_FIVE = "torch.linspace(-4, 4, 20).reshape(5, 4)"
_NONE = "torch.zeros(0, 4)"
_NAN = "torch.tensor([[1.0, nan, 3.0, inf], [4.0, 0.5, -1.0, 0.0]])"
_ALL = (_X, _FIVE, _ONE, _NONE, _NAN, f"float16@ {_X}", f"bfloat16@ {_X}")

strangers = Group("layers of strangers")


def _add(name: str, source: str, *inputs: str) -> None:
    strangers.whole(name, f"{IMPORTS}\n\n{source}", inputs=inputs or _ALL, varied=False)


_add(
    "lsq quantizer",
    """
class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()
    @staticmethod
    def backward(ctx, g):
        return g

class Model(nn.Module):
    def __init__(self, bits=4, per_channel=False):
        super().__init__()
        self.qmax = 2 ** (bits - 1) - 1
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("init_done", torch.tensor(0, dtype=torch.uint8))
        self.register_buffer("ema", torch.zeros(1))

    def forward(self, x):
        if self.training and self.init_done == 0:
            self.scale.data.copy_(2 * x.detach().abs().mean() / self.qmax ** 0.5 + 1e-3)
            self.init_done.fill_(1)
        if self.training:
            m = x.detach().abs().max() if x.numel() else torch.zeros(())
            if m > self.ema:
                self.ema.copy_(m.view(1))
            else:
                self.ema.mul_(0.9).add_(0.1 * m)
        s = self.scale.abs().clamp(min=1e-5)
        if torch.isnan(x).any():
            warnings.warn("nan in quantizer")
            x = torch.nan_to_num(x)
        q = Round.apply(x / s)
        q = torch.clamp(q, -self.qmax - 1, self.qmax)
        return q * s
""",
)
_add(
    "mixture of depths",
    """
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.ff = nn.Linear(d, d)
    def forward(self, x):
        return x + self.ff(self.norm(x))

class Model(nn.Module):
    def __init__(self, d=4, capacity=0.5):
        super().__init__()
        self.router = nn.Linear(d, 1)
        self.block = Block(d)
        self.capacity = capacity
        self.aux = None

    def forward(self, x, mask=None):
        logits = self.router(x).squeeze(-1)
        k = max(1, int(self.capacity * x.shape[0])) if x.shape[0] else 0
        if k == 0:
            return x
        top = logits.topk(k, -1)
        keep = torch.zeros_like(logits, dtype=torch.bool)
        keep[top.indices] = True
        if mask is not None and mask.any():
            keep = keep & ~mask
        out = x.clone()
        if keep.any():
            out[keep] = self.block(x[keep]) * torch.sigmoid(logits[keep]).unsqueeze(-1)
        self.aux = keep.float().mean().detach()
        return out
""",
    _X,
    f"({_X}, torch.tensor([True, False, True]))",
    f"({_X}, torch.zeros(3, dtype=torch.bool))",
    _ONE,
    _NONE,
    _FIVE,
    _NAN,
)
_add(
    "retrieval loss",
    """
class Model(nn.Module):
    def __init__(self, t=0.05):
        super().__init__()
        self.log_t = nn.Parameter(torch.tensor(math.log(1 / t)))
        self.proj = nn.Linear(4, 3)

    @property
    def temperature(self):
        return self.log_t.exp().clamp(max=100.0)

    def forward(self, q, p=None, labels=None, *, hard=None):
        q = F.normalize(self.proj(q), dim=-1)
        p = F.normalize(self.proj(p), dim=-1) if p is not None else q
        scores = q @ p.t() * self.temperature
        if labels is None:
            labels = torch.arange(q.shape[0], device=q.device) * (p.shape[0] // max(1, q.shape[0]))
        if hard is not None and hard.any():
            scores[hard] = scores[hard] * 2
        if (labels >= p.shape[0]).any():
            raise ValueError(f"label {labels.max().item()} out of {p.shape[0]}")
        loss = F.cross_entropy(scores, labels, reduction="none")
        loss = loss[~torch.isnan(loss)]
        return loss.mean()
""",
    f"({_X}, {_X})",
    f"({_X}, {_X}, torch.tensor([0, 2, 9]))",
    f"dict(q={_X}, hard=torch.eye(3).bool())",
    _ONE,
    f"({_NAN}, {_NAN})",
    f"dict(q={_FIVE}, p={_FIVE}, labels=torch.tensor([0,1,2,3,4]))",
)
_add(
    "tabular embeddings",
    """
class Model(nn.Module):
    def __init__(self, cards=(3, 4), n_num=2):
        super().__init__()
        self.embs = nn.ModuleList(nn.Embedding(c + 1, 3) for c in cards)
        self.register_buffer("mean", torch.zeros(n_num))
        self.register_buffer("std", torch.ones(n_num))
        self.register_buffer("seen", torch.tensor(0))
        self.missing = nn.Parameter(torch.zeros(n_num))
        self.cards = cards

    def forward(self, num, cat=None):
        nanmask = torch.isnan(num)
        if nanmask.any():
            num = torch.where(nanmask, self.missing.expand_as(num), num)
        if self.training and num.shape[0] > 1:
            self.seen += num.shape[0]
            self.mean.lerp_(num.detach().mean(0), 1.0 / self.seen.item())
            sd = num.detach().std(0)
            sd[sd == 0] = 1.0
            self.std.copy_(sd)
        parts = [(num - self.mean) / self.std]
        if cat is not None:
            for i, (e, c) in enumerate(zip(self.embs, self.cards)):
                ids = cat[:, i]
                if (ids < 0).any() or (ids >= c).any():
                    logger.warning("unknown category in column %d", i)
                    ids = torch.where((ids < 0) | (ids >= c), torch.full_like(ids, c), ids)
                parts.append(e(ids))
        return torch.cat(parts, 1)
""",
    "torch.tensor([[1., 2.], [3., 4.], [nan, 1.]])",
    "(torch.rand(3, 2), torch.tensor([[0, 1], [2, 3], [1, 0]]))",
    "(torch.rand(3, 2), torch.tensor([[0, 9], [-1, 3], [1, 0]]))",
    "torch.rand(1, 2)",
    "torch.zeros(0, 2)",
    "float64@ torch.rand(4, 2)",
)
_add(
    "actor critic",
    """
class RunningNorm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("var", torch.ones(n))
        self.register_buffer("count", torch.tensor(1e-4))

    def update(self, x):
        bm, bv, bc = x.mean(0), x.var(0, unbiased=False), x.shape[0]
        delta = bm - self.mean
        tot = self.count + bc
        self.mean = self.mean + delta * bc / tot
        self.var = (self.var * self.count + bv * bc + delta ** 2 * self.count * bc / tot) / tot
        self.count = tot

    def forward(self, x):
        if self.training and x.shape[0] > 0:
            self.update(x.detach())
        return ((x - self.mean) / (self.var + 1e-8).sqrt()).clamp(-10, 10)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = RunningNorm(4)
        self.pi, self.v = nn.Linear(4, 3), nn.Linear(4, 1)

    def forward(self, obs, done=None, deterministic=False, action_mask=None):
        h = self.norm(obs)
        logits = self.pi(h)
        if action_mask is not None:
            if not action_mask.any(-1).all():
                raise ValueError("no valid action")
            logits[~action_mask] = -1e9
        value = self.v(h).squeeze(-1)
        if done is not None and done.any():
            value[done] = 0.0
        if deterministic:
            return logits.argmax(-1), value
        dist = torch.distributions.Categorical(logits=logits)
        a = dist.sample()
        return a, dist.log_prob(a), value
""",
    f"({_X}, None, True)",
    f"({_X}, torch.tensor([True, False, True]), True)",
    f"({_X}, torch.zeros(3).bool(), True, torch.eye(3).bool())",
    f"({_X}, None, True, torch.zeros(3, 3).bool())",
    f"({_ONE}, None, True)",
    f"({_NAN}, None, True)",
)
_add(
    "affine coupling flow",
    """
class Coupling(nn.Module):
    def __init__(self, d, flip):
        super().__init__()
        self.net = nn.Linear(d // 2, d)
        self.flip = flip
    def forward(self, x, inverse=False):
        a, b = x.chunk(2, -1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, -1)
        s = torch.tanh(s)
        b = (b - t) * torch.exp(-s) if inverse else b * torch.exp(s) + t
        return torch.cat([b, a] if self.flip else [a, b], -1), s.sum(-1)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.flows = nn.ModuleList(Coupling(4, i % 2 == 1) for i in range(2))
        self.register_buffer("initialised", torch.tensor(False))
        self.loc = nn.Parameter(torch.zeros(4))

    def forward(self, x, bound=2.0):
        if self.training and not self.initialised:
            with torch.no_grad():
                self.loc.copy_(x.mean(0))
                self.initialised.fill_(True)
        inside = (x.abs() <= bound).all(-1)
        z, logdet = torch.zeros_like(x), x.new_zeros(x.shape[0])
        z[~inside] = x[~inside]
        if inside.any():
            y, ld = x[inside] - self.loc, 0.0
            for f in self.flows:
                y, l = f(y)
                ld = ld + l
            z[inside], logdet[inside] = y, ld
        return z, logdet
""",
)
_add(
    "adapters",
    """
class Adapter(nn.Module):
    def __init__(self, base, r=2):
        super().__init__()
        self.base = base
        self.a, self.b = nn.ParameterDict(), nn.ParameterDict()
        self.active, self.merged, self.scaling = [], [], {}
        self.drop = nn.Dropout(0.0)
        self.r = r

    def add(self, name, alpha):
        self.a[name] = nn.Parameter(torch.ones(self.r, self.base.in_features) * 0.1)
        self.b[name] = nn.Parameter(torch.ones(self.base.out_features, self.r) * 0.1)
        self.scaling[name] = alpha / self.r
        self.active.append(name)

    def forward(self, x, adapter_ids=None):
        prev = x.dtype
        out = self.base(x)
        for n in self.active:
            if n not in self.a:
                continue
            z = (self.drop(x.to(self.a[n].dtype)) @ self.a[n].t() @ self.b[n].t()) * self.scaling[n]
            if adapter_ids is not None:
                rows = adapter_ids == self.active.index(n)
                if not rows.any():
                    continue
                out[rows] = out[rows] + z[rows].to(out.dtype)
            else:
                out = out + z.to(out.dtype)
        return out.to(prev)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = Adapter(nn.Linear(4, 3))
        self.l.add("one", 4)
        self.l.add("two", 8)
    def forward(self, x, ids=None):
        y = self.l(x, ids)
        if y.dtype == torch.float16 and torch.isinf(y).any():
            m = torch.finfo(y.dtype).max - 1000
            y = torch.clamp(y, -m, m)
        return y
""",
    _X,
    f"({_X}, torch.tensor([0, 1, 0]))",
    f"({_X}, torch.tensor([0, 0, 0]))",
    f"({_X}, torch.tensor([7, 7, 7]))",
    f"({_NONE}, torch.zeros(0).long())",
    _ONE,
)
