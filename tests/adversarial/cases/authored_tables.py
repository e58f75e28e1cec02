"""Tables that numbers decide, initialised scales and observed ranges: forms whose fixes run while torch.compile traces."""

from tests.adversarial.cases.authoring import Authored

tables = Authored("authored constants")
scales = Authored("authored scales")
_ONE = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_TWO = "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])"

tables.write(
    "sinusoids in a function of numbers",
    """
    def sincos(embed_dim: int, grid: int) -> torch.Tensor:
        omega = np.arange(embed_dim // 2, dtype=np.float64)
        omega = 1.0 / 100 ** (omega / (embed_dim / 2.0))
        pos = np.arange(grid, dtype=np.float32).reshape(-1)
        out = np.outer(pos, omega)
        out = np.unwrap(out)
        return torch.from_numpy(np.concatenate([np.sin(out), np.cos(out)], axis=1)).float()


    class Model(nn.Module):
        def __init__(self, dim=4):
            super().__init__()
            self.dim = dim
            self.scale = 1
            self.proj = nn.Linear(3, dim)

        def forward(self, x):
            h = self.proj(x)
            table = sincos(self.dim, x.shape[0])
            h = h + table.to(h)
            table.mul_(2)
            again = sincos(self.dim, x.shape[0])
            again[0] = self.scale
            return h, table, again
    """,
    _ONE,
    "torch.ones(3, 3)",
)
tables.write(
    "a cached kernel that somebody writes",
    """
    import functools


    @functools.lru_cache(maxsize=None)
    def gaussian(size: int, sigma: float):
        coords = np.arange(size) - (size - 1) / 2
        g = np.exp(-(coords**2) / (2 * sigma**2))
        g = np.convolve(g, [1.0])
        return torch.from_numpy(np.unwrap(g / g.sum())).float()


    class Model(nn.Module):
        def __init__(self, size=3, sigma=1.0):
            super().__init__()
            self.size = size
            self.sigma = sigma
            self.gain = nn.Parameter(torch.ones(1))

        def forward(self, x):
            kernel = gaussian(self.size, self.sigma)
            blurred = F.conv1d(x[:, None], kernel[None, None], padding=self.size // 2)[:, 0]
            other = gaussian(self.size, self.sigma)
            if self.training:
                other.add_(1.0)
            return (x - blurred) * self.gain, kernel is other, kernel
    """,
    _ONE,
    "torch.ones(2, 3)",
)
tables.write(
    "a mel bank in forward",
    """
    RATE = 8000


    def hz_to_mel(freq: float) -> float:
        return 2595.0 * math.log10(1.0 + freq / 700.0)


    class Model(nn.Module):
        def __init__(self, n_fft=4, n_mels=2):
            super().__init__()
            self.n_fft = n_fft
            self.n_mels = n_mels
            self.gain = 1.0

        def forward(self, x):
            window = torch.from_numpy(np.unwrap(np.hanning(self.n_fft)))
            frames = F.pad(x, (0, 1)).double() * window * self.gain
            spec = torch.fft.rfft(frames.float()).abs()
            low, high = hz_to_mel(0.0), hz_to_mel(RATE / 2)
            pts = np.unwrap(np.linspace(low, high, self.n_mels + 2))
            bank = torch.as_tensor(pts[: self.n_mels + 1], dtype=spec.dtype)
            n = np.unwrap(np.linspace(0, 1, x.shape[1]))
            n[0] = 5
            return spec * bank, torch.tensor(n), window
    """,
    _ONE,
    "torch.ones(2, 3)",
)
tables.write(
    "quadrature nodes",
    '''
    class Model(nn.Module):
        """Integrates a layer over an interval with nodes that the constructor's number decides."""

        def __init__(self, n=3, low=-1.0, high=1.0):
            super().__init__()
            self.n = n
            self.low, self.high = low, high
            self.field = nn.Linear(3, 3)

        def forward(self, x, steps=None):
            n = self.n if steps is None else steps
            nodes, weights = np.polynomial.legendre.leggauss(n)
            nodes = 0.5 * (self.high - self.low) * nodes + 0.5 * (self.high + self.low)
            total = torch.zeros_like(x)
            for node, weight in zip(torch.as_tensor(nodes).to(x), torch.as_tensor(weights).to(x)):
                total = total + weight * self.field(x + node)
            weights *= 2
            return total, torch.as_tensor(weights)
    ''',
    _ONE,
    f"{_ONE}, 2",
    f"{_ONE}, 2.5",
    f"{_ONE}, True",
    f"{_ONE}, torch.tensor(2)",
)
tables.write(
    "old constructors in a sampler",
    """
    from torch.autograd import Variable


    class Model(nn.Module):
        def __init__(self, temperature=1.0):
            super().__init__()
            self.temperature = temperature
            self.register_buffer("table", torch.arange(6.0).view(2, 3))

        def forward(self, x):
            noise = torch.FloatTensor(x.size()).fill_(0.5)
            mask = torch.ByteTensor(x.size(0), x.size(1)).zero_()
            mask[0, 0] = 1
            pos = Variable(self.table[: x.size(0)], requires_grad=False)
            pos = pos + torch.Tensor(np.arange(3))
            fresh = x.data.new().resize_(x.size(0), 1).fill_(2)
            y = x + noise * pos + fresh
            y.add_(0.5, x)
            pos += 1
            return y / self.temperature, mask, self.table
    """,
    _ONE,
    "torch.ones(2, 3)",
)
scales.write(
    "scale from the first batch",
    """
    class Model(nn.Module):
        def __init__(self, features=3):
            super().__init__()
            self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))
            self.loc = nn.Parameter(torch.zeros(features))
            self.scale = nn.Parameter(torch.ones(features))
            self.lin = nn.Linear(features, features)

        def forward(self, x: torch.Tensor):
            y = self.lin(x)
            before = (self.scale**2).sum()
            if self.initialized == 0:
                with torch.no_grad():
                    self.loc.data.copy_(-y.mean(0))
                    self.scale.data.copy_(1 / (y.abs().mean(0) + 1e-6))
                self.initialized.fill_(1)
            return self.scale * (y + self.loc) + before
    """,
    _ONE,
    _TWO,
)
scales.write(
    "data that is replaced",
    """
    class Model(nn.Module):
        def __init__(self, features=3):
            super().__init__()
            self.register_buffer("done", torch.tensor(False))
            self.log_scale = nn.Parameter(torch.zeros(features))
            self.shift = nn.Parameter(torch.zeros(features))
            self.tied = nn.Linear(features, features)

        def forward(self, x):
            if self.training and not self.done:
                with torch.no_grad():
                    self.log_scale.data = -torch.log(x.abs().mean(0) + 1e-3)
                    self.shift.data = -x.mean(0)
                    self.done.data = torch.tensor(True)
            y = (x + self.shift) * self.log_scale.exp()
            return self.tied(y), self.log_scale.sum()
    """,
    _ONE,
    _TWO,
)
scales.write(
    "step size of a quantizer",
    """
    class Model(nn.Module):
        def __init__(self, bits=4):
            super().__init__()
            self.thd_neg, self.thd_pos = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
            self.s = nn.Parameter(torch.tensor(1.0))
            self.weight = nn.Parameter(torch.ones(3, 3))
            self.register_buffer("init_state", torch.zeros(1))

        def forward(self, x):
            if self.training and self.init_state == 0:
                self.s.data.copy_(2 * x.abs().mean() / 2.6)
                self.init_state.fill_(1)
            g = 1.0 / math.sqrt(x.numel() * self.thd_pos)
            s = (self.s - self.s * g).detach() + self.s * g
            q = torch.clamp(x / s, self.thd_neg, self.thd_pos)
            q = (q.round() - q).detach() + q
            return F.linear(q * s, self.weight)
    """,
    _ONE,
    _TWO,
)
scales.write(
    "observed ranges",
    """
    class Observer(nn.Module):
        def __init__(self, momentum=0.9):
            super().__init__()
            self.momentum = momentum
            self.register_buffer("min_val", torch.tensor(0.0))
            self.register_buffer("max_val", torch.tensor(0.0))

        def forward(self, x):
            low, high = x.detach().min(), x.detach().max()
            if self.min_val == self.max_val:
                self.min_val = low
                self.max_val = high
            elif self.momentum == -1:
                self.min_val = torch.min(self.min_val, low)
                self.max_val = torch.max(self.max_val, high)
            else:
                self.min_val = self.min_val * self.momentum + low * (1 - self.momentum)
                self.max_val = self.max_val * self.momentum + high * (1 - self.momentum)
            return self.min_val, self.max_val


    class Model(nn.Module):
        def __init__(self, bits=8):
            super().__init__()
            self.observer = Observer()
            self.levels = 2**bits - 1
            self.lin = nn.Linear(3, 3)

        def forward(self, x):
            low, high = self.observer(x)
            scale = torch.clamp(high - low, min=1e-8) / self.levels
            return self.lin(torch.round((x - low) / scale).clamp(0, self.levels) * scale + low)
    """,
    _ONE,
    _TWO,
)
scales.write(
    "codebook in forward",
    """
    class Model(nn.Module):
        def __init__(self, dim=3, size=2, decay=0.9):
            super().__init__()
            self.decay = decay
            self.register_buffer("inited", torch.tensor(False))
            self.register_buffer("embed", torch.zeros(size, dim))
            self.register_buffer("embed_avg", torch.zeros(size, dim))

        def forward(self, x):
            flat = x.detach()
            if not self.inited:
                self.embed.data.copy_(flat * 1.0)
                self.embed_avg.data.copy_(flat * 1.0)
                self.inited.data.copy_(torch.tensor(True))
            index = torch.cdist(x, self.embed).argmin(-1)
            quantize = F.embedding(index, self.embed)
            if self.training:
                onehot = F.one_hot(index, self.embed.shape[0]).to(flat)
                self.embed_avg.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
                self.embed.data.copy_(self.embed_avg)
            return x + (quantize - x).detach(), index
    """,
    _ONE,
    _TWO,
)
scales.write(
    "a momentum that counts batches",
    """
    class Model(nn.Module):
        def __init__(self, features=3, warm=2):
            super().__init__()
            self.warm = warm
            self.register_buffer("seen", torch.tensor(0))
            self.register_buffer("mean", torch.zeros(features))
            self.norm = nn.BatchNorm1d(features)

        def forward(self, x):
            batch = x.detach().mean(0)
            if self.seen < self.warm:
                self.mean = self.mean + batch / self.warm
            else:
                self.mean = self.mean * 0.9 + batch * 0.1
            if self.training:
                self.seen += 1
            if self.seen > 1:
                x = x - self.mean
            return self.norm(x)
    """,
    _ONE,
    _TWO,
)
