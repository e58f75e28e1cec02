"""Flows, samplers, experts and augmentations: rows that a mask chooses, tables that numbers decide."""

from tests.adversarial.cases.authoring import Authored

rows = Authored("authored rows")
tables = Authored("authored tables")

rows.write(
    "spline with linear tails",
    """
    def rational(inputs, widths, heights, left, right, min_width=1e-3):
        if inputs.min() < left or inputs.max() > right:
            raise ValueError("outside of the domain")
        num_bins = widths.shape[-1]
        if min_width * num_bins > 1.0:
            raise ValueError("too many bins")
        widths = F.softmax(widths, dim=-1)
        widths = min_width + (1 - min_width * num_bins) * widths
        cum = F.pad(widths.cumsum(-1), (1, 0))
        cum = (right - left) * cum + left
        widths = cum[..., 1:] - cum[..., :-1]
        index = (inputs[..., None] >= cum[..., :-1]).sum(-1) - 1
        index = index.clamp(0, num_bins - 1)[..., None]
        low = cum.gather(-1, index)[..., 0]
        width = widths.gather(-1, index)[..., 0]
        height = F.softplus(heights).gather(-1, index)[..., 0]
        theta = (inputs - low) / width
        return theta * height, torch.log(height / width)


    class Model(nn.Module):
        def __init__(self, bins=4, bound=2.0):
            super().__init__()
            self.bins = bins
            self.tail_bound = bound
            self.net = nn.Linear(3, 3 * 2 * bins)

        def forward(self, x):
            params = self.net(x).view(*x.shape, 2 * self.bins)
            w, h = params[..., : self.bins], params[..., self.bins :]
            inside = (x >= -self.tail_bound) & (x <= self.tail_bound)
            outside = ~inside
            outputs = torch.zeros_like(x)
            logabsdet = torch.zeros_like(x)
            outputs[outside] = x[outside]
            logabsdet[outside] = 0
            if torch.any(inside):
                outputs[inside], logabsdet[inside] = rational(
                    inputs=x[inside], widths=w[inside, :], heights=h[inside, :], left=-self.tail_bound, right=self.tail_bound
                )
            return outputs, logabsdet.sum(-1)
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.tensor([[9.0, -9.0, 9.0], [4.0, 7.5, -11.0]])",
)
rows.write(
    "box decoding beside ignored anchors",
    """
    class Model(nn.Module):
        def __init__(self, std=0.1, clip=4.0):
            super().__init__()
            self.std = std
            self.clip = clip
            self.reg = nn.Linear(3, 4)

        def forward(self, feats, anchors, labels):
            deltas = self.reg(feats) * self.std
            keep = labels >= 0
            positive = labels > 0
            boxes = anchors.clone()
            size = (anchors[:, 2:] - anchors[:, :2]).clamp(min=1e-3)
            center = anchors[:, :2] + 0.5 * size
            if positive.any():
                moved = center[positive] + deltas[positive, :2] * size[positive]
                grown = size[positive] * deltas[positive, 2:].clamp(max=self.clip).exp()
                boxes[positive] = torch.cat([moved - 0.5 * grown, moved + 0.5 * grown], dim=-1)
            target = labels[keep].float()
            score = deltas[keep].sum(-1)
            loss = F.binary_cross_entropy_with_logits(score, target.clamp(max=1), reduction="sum")
            n = positive.sum().item()
            if n > 0:
                loss = loss / n
            return boxes, loss
    """,
    "torch.ones(3, 3), torch.tensor([[0.0, 0, 1, 1], [0, 0, 2, 2], [1, 1, 3, 3]]), torch.tensor([1, 0, -1])",
    "torch.ones(3, 3), torch.tensor([[0.0, 0, 1, 1], [0, 0, 2, 2], [1, 1, 3, 3]]), torch.tensor([-1, 0, -1])",
)
rows.write(
    "experts on masked tokens",
    """
    class Expert(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.up = nn.Linear(dim, dim)
            self.down = nn.Linear(dim, dim)

        def forward(self, x):
            return self.down(F.silu(self.up(x)))


    class Model(nn.Module):
        def __init__(self, dim=3, experts=3, k=2):
            super().__init__()
            self.k = k
            self.num_experts = experts
            self.gate = nn.Linear(dim, experts, bias=False)
            self.experts = nn.ModuleList(Expert(dim) for _ in range(experts))

        def forward(self, x):
            shape = x.shape
            x = x.view(-1, shape[-1])
            scores = F.softmax(self.gate(x), dim=-1)
            weights, selected = torch.topk(scores, self.k, dim=-1)
            weights = weights / weights.sum(dim=-1, keepdim=True)
            out = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                batch, nth = torch.where(selected == i)
                if batch.shape[0] == 0:
                    continue
                out[batch] += weights[batch, nth, None] * expert(x[batch])
            load = torch.bincount(selected.flatten(), minlength=self.num_experts)
            return out.view(shape), load
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])",
)
rows.write(
    "dynamic thresholding and masked noise",
    """
    class Model(nn.Module):
        def __init__(self, ratio=0.9, maximum=1.5):
            super().__init__()
            self.ratio = ratio
            self.maximum = maximum
            self.net = nn.Linear(3, 3)

        def threshold(self, sample):
            flat = sample.reshape(sample.shape[0], -1).abs()
            s = torch.quantile(flat, self.ratio, dim=1)
            s = torch.clamp(s, min=1, max=self.maximum).unsqueeze(1)
            return torch.clamp(sample, -s, s) / s

        def forward(self, x, t, mask=None):
            pred = self.net(x)
            pred = self.threshold(pred)
            late = t > 1
            if late.any():
                pred[late] = pred[late] * 0.5 + x[late] * 0.5
            if mask is not None:
                known = mask.bool()
                pred[known] = x[known]
                scale = x[known].abs().mean()
                pred = pred / (scale + 1e-3)
            early = ~late
            pred[early] += torch.log1p(x[early].abs())
            return pred
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([0, 3])",
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([0, 3]), torch.tensor([[1, 0, 1], [0, 0, 0]])",
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([0, 1]), torch.zeros(2, 3)",
)
rows.write(
    "piecewise conversions of colours",
    """
    def to_linear(image):
        out = torch.zeros_like(image)
        high = image > 0.04045
        out[high] = torch.pow((image[high] + 0.055) / 1.055, 2.4)
        out[~high] = image[~high] / 12.92
        return out


    def to_lab(xyz):
        power = torch.zeros_like(xyz)
        mask = xyz > 0.008856
        if mask.any():
            power[mask] = xyz[mask] ** (1 / 3)
        low = xyz.le(0.008856)
        if torch.any(low):
            power[low] = 7.787 * xyz[low] + 16 / 116
        return power


    class Model(nn.Module):
        def __init__(self, inplace=False):
            super().__init__()
            self.inplace = inplace
            self.register_buffer("matrix", torch.eye(3) + 0.1)

        def forward(self, image):
            image = image if self.inplace else image.clone()
            linear = to_linear(image.abs())
            xyz = linear @ self.matrix.t()
            lab = to_lab(xyz)
            hue = torch.atan2(lab[..., 1], lab[..., 2])
            negative = hue < 0
            hue[negative] += 2 * math.pi
            return lab, hue
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.zeros(2, 3)",
)
rows.write(
    "a tracker that associates",
    """
    class Model(nn.Module):
        def __init__(self, dim=3, threshold=0.5, slots=4):
            super().__init__()
            self.threshold = threshold
            self.register_buffer("memory", torch.zeros(slots, dim))
            self.register_buffer("age", torch.zeros(slots, dtype=torch.long))
            self.embed = nn.Linear(dim, dim)

        def forward(self, dets, scores):
            feats = self.embed(dets)
            confident = scores > self.threshold
            sim = F.normalize(feats, dim=-1) @ F.normalize(self.memory + 1e-3, dim=-1).t()
            best, slot = sim.max(dim=-1)
            good = confident & (best > 0)
            if good.any():
                feats[good] = 0.5 * feats[good] + 0.5 * self.memory[slot[good]]
            lost = self.age > 2
            self.memory[lost] = 0.0
            self.age[lost] = 0
            self.age += 1
            found = good.sum().item()
            ratio = found / max(confident.sum().item(), 1)
            return feats * ratio, good
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([0.9, 0.1])",
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([0.0, 0.1])",
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([0.9, 0.8])",
)
tables.write(
    "sinusoids in two dimensions",
    """
    def get_1d_sincos(embed_dim, pos):
        assert embed_dim % 2 == 0
        omega = np.arange(embed_dim // 2, dtype=np.float64)
        omega /= embed_dim / 2.0
        omega = 1.0 / 100**omega
        pos = pos.reshape(-1)
        out = np.einsum("m,d->md", pos, omega)
        return np.concatenate([np.sin(out), np.cos(out)], axis=1)


    def get_2d_sincos(embed_dim, grid_size, cls_token=False):
        grid_h = np.arange(grid_size, dtype=np.float32)
        grid_w = np.arange(grid_size, dtype=np.float32)
        grid = np.meshgrid(grid_w, grid_h)
        grid = np.stack(grid, axis=0).reshape([2, 1, grid_size, grid_size])
        emb_h = get_1d_sincos(embed_dim // 2, grid[0])
        emb_w = get_1d_sincos(embed_dim // 2, grid[1])
        emb = np.concatenate([emb_h, emb_w], axis=1)
        if cls_token:
            emb = np.concatenate([np.zeros([1, embed_dim]), emb], axis=0)
        return emb


    class Model(nn.Module):
        def __init__(self, dim=4, cls=False):
            super().__init__()
            self.dim = dim
            self.cls = cls
            self.proj = nn.Linear(3, dim)

        def forward(self, x):
            h = self.proj(x)
            table = get_2d_sincos(self.dim, x.shape[0], cls_token=self.cls)
            table = torch.from_numpy(table).float().to(h.device)
            h = h.unsqueeze(1) + table.unsqueeze(0)
            table.mul_(2)
            return h, table
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.ones(3, 3)",
)
tables.write(
    "windows and filter banks",
    """
    def hz_to_mel(freq):
        return 2595.0 * math.log10(1.0 + freq / 700.0)


    def filters(n_freqs, n_mels, sr):
        all_freqs = np.linspace(0, sr // 2, n_freqs)
        pts = np.linspace(hz_to_mel(0.0), hz_to_mel(sr / 2), n_mels + 2)
        pts = 700.0 * (10.0 ** (pts / 2595.0) - 1.0)
        diff = pts[1:] - pts[:-1]
        slopes = pts[None, :] - all_freqs[:, None]
        down = -slopes[:, :-2] / diff[:-1]
        up = slopes[:, 2:] / diff[1:]
        return np.maximum(0, np.minimum(down, up))


    class Model(nn.Module):
        def __init__(self, n_fft=4, n_mels=2, sr=8000, window="hann"):
            super().__init__()
            self.n_fft = n_fft
            self.n_mels = n_mels
            self.sr = sr
            self.window = window

        def forward(self, x):
            window = np.hanning(self.n_fft) if self.window == "hann" else np.ones(self.n_fft)
            window = torch.tensor(window, dtype=x.dtype)
            frames = F.pad(x, (0, 1)) * window
            spec = torch.fft.rfft(frames).abs()
            bank = torch.as_tensor(filters(self.n_fft // 2 + 1, self.n_mels, self.sr)).to(spec)
            return torch.log(spec @ bank + 1e-5)
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.ones(2, 3)",
)
tables.write(
    "gaussian kernels",
    """
    import functools


    @functools.lru_cache(maxsize=None)
    def gaussian(size, sigma):
        coords = np.arange(size) - (size - 1) / 2
        g = np.exp(-(coords**2) / (2 * sigma**2))
        return torch.from_numpy(g / g.sum()).float()


    def binomial(order):
        row = np.array([1.0])
        for _ in range(order):
            row = np.convolve(row, [1.0, 1.0])
        return torch.tensor(row / row.sum(), dtype=torch.float32)


    class Model(nn.Module):
        def __init__(self, size=3, sigma=1.0):
            super().__init__()
            self.size = size
            self.sigma = sigma
            self.gain = nn.Parameter(torch.ones(1))

        def forward(self, x):
            kernel = gaussian(self.size, self.sigma)
            blurred = F.conv1d(x[:, None], kernel[None, None], padding=self.size // 2)[:, 0]
            other = binomial(self.size - 1)
            sharp = F.conv1d(x[:, None], other[None, None], padding=self.size // 2)[:, 0]
            return (blurred - sharp) * self.gain, kernel, other
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.ones(2, 3)",
)
tables.write(
    "relative positions and rolled windows",
    """
    class Model(nn.Module):
        def __init__(self, window=3, shift=1):
            super().__init__()
            self.window = window
            self.shift_size = shift
            self.bias = nn.Parameter(torch.arange(25.0).view(5, 5))
            self.register_buffer("offset", torch.tensor(1))

        def attn_mask(self, n):
            mask = np.zeros((n, n))
            cnt = 0
            for part in (slice(0, -self.shift_size), slice(-self.shift_size, None)):
                mask[part, :] = cnt
                cnt += 1
            mask = mask.reshape(-1)
            diff = mask[None, :] - mask[:, None]
            return torch.from_numpy(np.where(diff != 0, -100.0, 0.0)).float()

        def forward(self, x):
            n = x.shape[1]
            coords = torch.arange(n)
            rel = coords[:, None] - coords[None, :] + n - 1
            bias = self.bias[rel, rel.t()]
            shifted = torch.roll(x, shifts=-int(self.offset), dims=1)
            picked = x[:, self.offset]
            scores = shifted.t() @ shifted + bias + self.attn_mask(n)[:n, :n]
            out = x @ scores.softmax(-1)
            return torch.roll(out, int(self.offset), 1), picked
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.ones(2, 3)",
)
