"""Quantizers, codebooks, normalisations and trackers: state that a call initialises, counts and averages."""

from tests.adversarial.cases.authoring import Authored

states = Authored("authored states")

states.write(
    "activation normalisation",
    '''
    class Model(nn.Module):
        """ActNorm of Glow: scale and bias from the first batch."""

        def __init__(self, features=3, eps=1e-6):
            super().__init__()
            self.register_buffer("initialized", torch.tensor(False, dtype=torch.bool))
            self.log_scale = nn.Parameter(torch.zeros(features))
            self.shift = nn.Parameter(torch.zeros(features))
            self.eps = eps

        @property
        def scale(self):
            return torch.exp(self.log_scale)

        def _initialize(self, inputs):
            with torch.no_grad():
                std = inputs.std(dim=0)
                mu = (inputs / std).mean(dim=0)
                self.log_scale.data = -torch.log(std)
                self.shift.data = -mu
                self.initialized.data = torch.tensor(True, dtype=torch.bool)

        def forward(self, inputs):
            if self.training and not self.initialized:
                self._initialize(inputs)
            outputs = self.scale * inputs + self.shift
            logabsdet = torch.sum(self.log_scale) * outputs.new_ones(inputs.shape[0])
            return outputs, logabsdet
    ''',
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])",
)
states.write(
    "activation normalisation in forward",
    """
    class Model(nn.Module):
        def __init__(self, features=3):
            super().__init__()
            self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))
            self.loc = nn.Parameter(torch.zeros(1, features))
            self.scale = nn.Parameter(torch.ones(1, features))
            self.lin = nn.Linear(features, features)

        def forward(self, x: torch.Tensor):
            y = self.lin(x)
            if self.training and self.initialized.item() == 0:
                with torch.no_grad():
                    mean = y.mean(0, keepdim=True)
                    std = y.std(0, keepdim=True)
                    self.loc.data.copy_(-mean)
                    self.scale.data.copy_(1 / (std + 1e-6))
                self.initialized.fill_(1)
            h = self.scale * (y + self.loc)
            return h
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])",
)
states.write(
    "learned step size",
    """
    class Model(nn.Module):
        def __init__(self, bits=4, per_channel=False):
            super().__init__()
            self.thd_neg = -(2 ** (bits - 1))
            self.thd_pos = 2 ** (bits - 1) - 1
            self.s = nn.Parameter(torch.ones(1))
            self.weight = nn.Parameter(torch.randn(3, 3))
            self.register_buffer("init_state", torch.zeros(1))

        def grad_scale(self, x, scale):
            y = x
            y_grad = x * scale
            return (y - y_grad).detach() + y_grad

        def forward(self, x):
            if self.training and self.init_state == 0:
                self.s.data.copy_(2 * x.abs().mean() / math.sqrt(self.thd_pos))
                self.init_state.fill_(1)
            s_grad_scale = 1.0 / ((self.thd_pos * x.numel()) ** 0.5)
            s_scale = self.grad_scale(self.s, s_grad_scale)
            x = x / s_scale
            x = torch.clamp(x, self.thd_neg, self.thd_pos)
            x = (x.round() - x).detach() + x
            return F.linear(x * s_scale, self.weight)
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])",
)
states.write(
    "moving average of observed ranges",
    """
    class Observer(nn.Module):
        def __init__(self, momentum=0.9):
            super().__init__()
            self.momentum = momentum
            self.register_buffer("min_val", torch.zeros(1))
            self.register_buffer("max_val", torch.zeros(1))

        def forward(self, x):
            if self.training:
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
            q = torch.round((x - low) / scale).clamp(0, self.levels)
            return self.lin(q * scale + low)
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])",
)
states.write(
    "a codebook that is initialised once",
    """
    class Model(nn.Module):
        def __init__(self, dim=3, size=2, decay=0.9, eps=1e-5):
            super().__init__()
            self.decay = decay
            self.eps = eps
            self.register_buffer("inited", torch.Tensor([False]))
            self.register_buffer("cluster_size", torch.zeros(size))
            self.register_buffer("embed", torch.zeros(size, dim))
            self.register_buffer("embed_avg", torch.zeros(size, dim))

        def init_embed_(self, data):
            if self.inited:
                return
            embed = data[: self.embed.shape[0]].clone()
            self.embed.data.copy_(embed)
            self.embed_avg.data.copy_(embed.clone())
            self.cluster_size.data.copy_(torch.ones_like(self.cluster_size))
            self.inited.data.copy_(torch.Tensor([True]))

        def forward(self, x):
            self.init_embed_(x.detach())
            dist = torch.cdist(x, self.embed)
            index = dist.argmin(-1)
            onehot = F.one_hot(index, self.embed.shape[0]).type(x.dtype)
            quantize = F.embedding(index, self.embed)
            if self.training:
                self.cluster_size.mul_(self.decay).add_(onehot.sum(0).detach(), alpha=1 - self.decay)
                self.embed_avg.mul_(self.decay).add_(onehot.t() @ x.detach(), alpha=1 - self.decay)
                n = self.cluster_size.sum()
                cluster_size = (self.cluster_size + self.eps) / (n + self.eps) * n
                self.embed.data.copy_(self.embed_avg / cluster_size.unsqueeze(1))
            quantize = x + (quantize - x).detach()
            return quantize, index
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])",
)
states.write(
    "a running normaliser",
    '''
    class Model(nn.Module):
        """Running mean and variance of observations, with a count that a buffer keeps."""

        def __init__(self, shape=3, until=4, eps=1e-2):
            super().__init__()
            self.until = until
            self.eps = eps
            self.register_buffer("_mean", torch.zeros(1, shape))
            self.register_buffer("_var", torch.ones(1, shape))
            self.register_buffer("_std", torch.ones(1, shape))
            self.register_buffer("count", torch.tensor(0, dtype=torch.long))

        def forward(self, x):
            if self.training:
                self.update(x)
            return (x - self._mean) / (self._std + self.eps)

        @torch.no_grad()
        def update(self, x):
            if self.until is not None and self.count >= self.until:
                return
            count_x = x.shape[0]
            self.count += count_x
            rate = count_x / self.count
            var_x = torch.var(x, dim=0, unbiased=False, keepdim=True)
            mean_x = torch.mean(x, dim=0, keepdim=True)
            delta_mean = mean_x - self._mean
            self._mean += rate * delta_mean
            self._var += rate * (var_x - self._var + delta_mean * (mean_x - self._mean))
            self._std = torch.sqrt(self._var)
    ''',
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])",
)
states.write(
    "a queue of keys",
    """
    class Model(nn.Module):
        def __init__(self, dim=3, size=4, m=0.9, T=0.07):
            super().__init__()
            self.K = size
            self.m = m
            self.T = T
            self.encoder_q = nn.Linear(dim, dim)
            self.encoder_k = nn.Linear(dim, dim)
            self.register_buffer("queue", F.normalize(torch.randn(dim, size), dim=0))
            self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

        @torch.no_grad()
        def _momentum_update(self):
            for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
                k.data = k.data * self.m + q.data * (1.0 - self.m)

        @torch.no_grad()
        def _dequeue_and_enqueue(self, keys):
            batch_size = keys.shape[0]
            ptr = int(self.queue_ptr)
            assert self.K % batch_size == 0
            self.queue[:, ptr : ptr + batch_size] = keys.T
            ptr = (ptr + batch_size) % self.K
            self.queue_ptr[0] = ptr

        def forward(self, im_q, im_k):
            q = F.normalize(self.encoder_q(im_q), dim=1)
            with torch.no_grad():
                self._momentum_update()
                k = F.normalize(self.encoder_k(im_k), dim=1)
            l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
            l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
            logits = torch.cat([l_pos, l_neg], dim=1) / self.T
            labels = torch.zeros(logits.shape[0], dtype=torch.long)
            self._dequeue_and_enqueue(k)
            return F.cross_entropy(logits, labels)
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.ones(2, 3)",
    "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]]), torch.zeros(2, 3)",
    "torch.ones(2, 3), torch.ones(2, 3)",
)
states.write(
    "a warm-up that a buffer counts",
    """
    class Model(nn.Module):
        def __init__(self, warmup=2, beta=0.9):
            super().__init__()
            self.warmup = warmup
            self.beta = beta
            self.register_buffer("step", torch.tensor(0))
            self.register_buffer("mean", torch.zeros(3))
            self.lin = nn.Linear(3, 3)

        def forward(self, x):
            if self.training:
                self.step += 1
                if self.step < self.warmup:
                    self.mean = self.mean + x.detach().mean(0) / self.warmup
                else:
                    self.mean = self.mean * self.beta + x.detach().mean(0) * (1 - self.beta)
            correction = 1 - self.beta ** self.step.item()
            y = self.lin(x - self.mean)
            if self.step > 1:
                y = y / max(correction, 1e-3)
            return y
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])",
)
states.write(
    "an exponential moving average of a loss scale",
    """
    class Model(nn.Module):
        def __init__(self, decay=0.5, clip=2.0):
            super().__init__()
            self.decay = decay
            self.clip = clip
            self.register_buffer("scale", torch.ones(1))
            self.register_buffer("updates", torch.zeros(1, dtype=torch.int32))
            self.lin = nn.Linear(3, 3)

        def forward(self, x):
            y = self.lin(x)
            norm = y.detach().norm().item()
            factor = min(self.clip / max(norm, 1e-6), 1.0)
            y = y * factor
            if self.training:
                self.updates += 1
                self.scale.mul_(self.decay).add_(norm * (1 - self.decay))
            old = self.scale.item()
            self.scale.mul_(2)
            z = y / max(old, 1e-3)
            if old > 1.0:
                z = z * old
            return z
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])",
)
states.write(
    "rotary tables that grow",
    """
    class Rotary(nn.Module):
        def __init__(self, dim=4, base=100.0, longest=4):
            super().__init__()
            self.dim = dim
            self.base = base
            self.original = longest
            self.max_seq_len_cached = longest
            inv = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
            self.register_buffer("inv_freq", inv, persistent=False)
            self.original_inv_freq = self.inv_freq

        def _update(self, position_ids, device):
            seq_len = torch.max(position_ids) + 1
            if seq_len > self.max_seq_len_cached:
                base = self.base * (seq_len / self.original)
                inv = 1.0 / (base ** (torch.arange(0, self.dim, 2).float() / self.dim))
                self.register_buffer("inv_freq", inv, persistent=False)
                self.max_seq_len_cached = seq_len
            if seq_len < self.original and self.max_seq_len_cached > self.original:
                self.register_buffer("inv_freq", self.original_inv_freq, persistent=False)
                self.max_seq_len_cached = self.original

        @torch.no_grad()
        def forward(self, x, position_ids):
            self._update(position_ids, device=x.device)
            freqs = position_ids[..., None].float() * self.inv_freq
            return freqs.cos(), freqs.sin()


    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rotary = Rotary()
            self.lin = nn.Linear(2, 2)

        def forward(self, x, position_ids):
            cos, sin = self.rotary(x, position_ids)
            return self.lin(x * cos + sin)
    """,
    "torch.ones(3, 2), torch.tensor([0, 1, 2])",
    "torch.ones(3, 2), torch.tensor([3, 4, 5])",
    "torch.ones(3, 2), torch.tensor([0, 1, 2])",
)
