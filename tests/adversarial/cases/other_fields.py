"""Layers as authors of five fields write them: samplers, operators, folding, graphs and state-space models."""

from tests.adversarial.case import IMPORTS, Group

_X = "torch.linspace(-2, 3, 12).reshape(3, 4)"
_T = "torch.linspace(-2, 3, 24).reshape(2, 3, 4)"
_MORE = "torch.linspace(-1, 5, 48).reshape(3, 4, 4)"

strangers = Group("layers of other fields")
strangers.whole(
    "a sampler's step",
    IMPORTS
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        betas = torch.linspace(1e-4, 0.02, 10)
        self.register_buffer("alphas_cumprod", torch.cumprod(1 - betas, 0))
        self.lower_order_final = True
        self.step_index = None
        self.net = nn.Linear(4, 4)

    def sigma(self, t):
        a = self.alphas_cumprod[t]
        return ((1 - a) / a).sqrt()

    def forward(self, sample, timestep, prev=None, eta=0.0, return_dict=True):
        if torch.is_tensor(timestep):
            if timestep.ndim == 0:
                timestep = timestep[None]
            timestep = timestep.to(sample.device)
        if timestep.max() >= len(self.alphas_cumprod):
            raise ValueError(f"timestep {timestep.max()} too large")
        sig = self.sigma(timestep).view(-1, *([1] * (sample.dim() - 1)))
        eps = self.net(sample)
        if prev is not None and (timestep > 2).all():
            eps = 1.5 * eps - 0.5 * prev
        if eta > 0:
            eps = eps + eta * torch.randn_like(eps)
        out = sample - sig * eps
        if torch.isnan(out).any():
            logger.warning("nan in sampler at %s", timestep.tolist())
            out = torch.nan_to_num(out)
        s = out.abs().quantile(0.995)
        if s > 1:
            out = out.clamp(-s, s) / s
        if not return_dict:
            return (out,)
        return {"prev": out, "sigma": sig}
""",
    inputs=(
        f"({_X}, torch.tensor([1, 2, 3]))",
        f"({_X}, torch.tensor(5))",
        f"({_X}, torch.tensor([12]))",
        f"dict(sample={_X}, timestep=torch.tensor([4]), prev={_X}, eta=0.3)",
        "dict(sample=torch.linspace(-3, 4, 20).reshape(5, 4) * 0.1, timestep=torch.tensor([0]), return_dict=False)",
    ),
)
strangers.whole(
    "a neural operator that counts its calls",
    IMPORTS
    + """
class Spectral(nn.Module):
    def __init__(self, c, modes):
        super().__init__()
        self.modes = modes
        self.scale = 1 / (c * c)
        self.weights = nn.Parameter(self.scale * torch.rand(c, c, modes, dtype=torch.cfloat))

    def forward(self, x):
        ft = torch.fft.rfft(x)
        modes = min(self.modes, ft.size(-1))
        out = torch.zeros_like(ft)
        out[..., :modes] = torch.einsum("bix,iox->box", ft[..., :modes], self.weights[..., :modes])
        return torch.fft.irfft(out, n=x.size(-1))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Spectral(3, 2) for _ in range(2)])
        self.register_buffer("n_calls", torch.zeros((), dtype=torch.long))
        self.max_norm = 3.0

    def forward(self, x, grid=None):
        self.n_calls += 1
        if grid is not None:
            if grid.min() < 0 or grid.max() > 1:
                warnings.warn("grid outside [0, 1]")
            x = x * grid
        for i, layer in enumerate(self.layers):
            h = layer(x)
            norm = h.norm()
            if norm > self.max_norm:
                h = h * (self.max_norm / norm)
            x = x + F.gelu(h) if i < len(self.layers) - 1 else h
        if self.n_calls.item() % 2 == 0:
            return x
        return x * 0.5
""",
    inputs=(
        f"({_T},)",
        f"({_MORE}[:, :3],)",
        f"({_T}, torch.rand(4))",
        f"({_T}, torch.rand(4) * 2)",
    ),
)
strangers.whole(
    "pair features under masks",
    IMPORTS
    + """
def masked_mean(x, mask, dim, eps=1e-5):
    if mask is None:
        return x.mean(dim)
    if mask.sum() == 0:
        return torch.zeros_like(x.mean(dim))
    return (x * mask).sum(dim) / (mask.sum(dim) + eps)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.inf = 1e9
        self.chunk_size = None

    def _chunk(self, x):
        outs = []
        for i in range(0, x.shape[0], self.chunk_size):
            outs.append(self.lin(x[i:i + self.chunk_size]))
        return torch.cat(outs) if outs else x

    def forward(self, m, z, mask=None, use_lma=False):
        if mask is None:
            mask = m.new_ones(m.shape[:-1])
        if torch.any(mask < 0):
            raise ValueError("mask has negative entries")
        bias = (self.inf * (mask - 1))[..., None]
        a = self._chunk(m) if self.chunk_size else self.lin(m)
        a = a + bias
        if torch.isinf(a).any():
            clamp = torch.finfo(a.dtype).max - 1000
            a = torch.clamp(a, min=-clamp, max=clamp)
        p = torch.softmax(a, dim=-2)
        avg = masked_mean(p, mask[..., None], -2)
        if z.shape[-1] != avg.shape[-1]:
            raise RuntimeError("shapes")
        if not use_lma and (z > 5).any():
            z = z.clamp(max=5)
        return z + avg
""",
    inputs=(
        f"({_T}, torch.ones(2, 4))",
        f"({_T}, torch.full((2, 4), 7.0), torch.tensor([[1., 0., 1.], [0., 0., 0.]]))",
        f"({_T}, torch.ones(2, 4), torch.zeros(2, 3))",
        f"({_T}, torch.ones(2, 4), -torch.ones(2, 3))",
        f"({_MORE}, torch.ones(3, 4), None, True)",
    ),
)
strangers.whole(
    "attention over edges, with lonely nodes",
    IMPORTS
    + """
def softmax(src, index, num_nodes):
    m = torch.full((num_nodes,), float("-inf"), dtype=src.dtype).scatter_reduce(0, index, src, "amax")
    out = (src - m[index]).exp()
    s = torch.zeros(num_nodes, dtype=src.dtype).scatter_add(0, index, out)
    return out / (s[index] + 1e-16)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4, bias=False)
        self.att = nn.Parameter(torch.ones(4) * 0.1)
        self.add_self_loops = True
        self._cached = None

    def forward(self, x, edge_index, edge_weight=None, num_nodes=None):
        N = num_nodes or x.size(0)
        if edge_index.numel() > 0 and edge_index.max() >= N:
            raise IndexError(f"node {edge_index.max().item()} of {N}")
        row, col = edge_index
        if self.add_self_loops:
            loop = torch.arange(N)
            row, col = torch.cat([row, loop]), torch.cat([col, loop])
            if edge_weight is not None:
                edge_weight = torch.cat([edge_weight, edge_weight.new_ones(N)])
        h = self.lin(x)
        e = F.leaky_relu((h[row] * self.att).sum(-1) + (h[col] * self.att).sum(-1))
        if edge_weight is not None:
            if (edge_weight == 0).any():
                e = e.masked_fill(edge_weight == 0, -1e4)
            e = e * edge_weight
        a = softmax(e, col, N)
        out = torch.zeros_like(h).index_add(0, col, h[row] * a[:, None])
        deg = torch.bincount(col, minlength=N)
        iso = deg == 0
        if iso.any():
            out[iso] = h[iso]
        return out
""",
    inputs=(
        f"({_X}, torch.tensor([[0, 1], [1, 2]]))",
        f"({_X}, torch.tensor([[0, 1], [1, 2]]), torch.tensor([1.0, 0.0]))",
        f"({_X}, torch.tensor([[0, 5], [1, 2]]))",
        "(torch.linspace(-3, 4, 20).reshape(5, 4), torch.tensor([[0, 4, 3], [1, 2, 3]]))",
        f"({_X}, torch.zeros(2, 0, dtype=torch.long))",
    ),
)
strangers.whole(
    "a state-space layer with a cache",
    IMPORTS
    + """
class Model(nn.Module):
    def __init__(self, d=4, n=3):
        super().__init__()
        self.A_log = nn.Parameter(torch.log(torch.arange(1, n + 1).float()).repeat(d, 1))
        self.D = nn.Parameter(torch.ones(d))
        self.x_proj = nn.Linear(d, 2 * n + 1)
        self.dt_proj = nn.Linear(1, d)
        self.n = n
        self.layer_idx = 0

    def forward(self, x, cache=None, seqlen_offset=None):
        b, l, d = x.shape
        A = -torch.exp(self.A_log.float())
        dt, B, C = self.x_proj(x).split([1, self.n, self.n], -1)
        dt = F.softplus(self.dt_proj(dt))
        if torch.isnan(dt).any():
            dt = torch.nan_to_num(dt, nan=1e-3)
        if (dt > 20).any():
            dt = dt.clamp(max=20)
        h = x.new_zeros(b, d, self.n)
        if cache is not None:
            if seqlen_offset is not None and seqlen_offset > 0:
                h = cache[self.layer_idx]
        ys = []
        for t in range(l):
            h = torch.exp(dt[:, t, :, None] * A) * h + dt[:, t, :, None] * B[:, t, None, :] * x[:, t, :, None]
            ys.append((h * C[:, t, None, :]).sum(-1))
        y = torch.stack(ys, 1) + x * self.D
        if cache is not None:
            cache[self.layer_idx].copy_(h)
        return y
""",
    inputs=(
        f"({_T},)",
        f"({_MORE},)",
        f"({_T}, [torch.zeros(2, 4, 3)], 0)",
        f"({_T}, [torch.ones(2, 4, 3)], 3)",
        f"({_T}, [torch.ones(2, 4, 3)], torch.tensor(3))",
    ),
)
