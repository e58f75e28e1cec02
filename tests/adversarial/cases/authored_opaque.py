"""Recurrent layers, suppression, decoding loops and trackers: what becomes an opaque operator with `--opaque`."""

from tests.adversarial.cases.authoring import Authored

opaque = Authored("authored operators")
_ONE = "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])"
_TWO = "torch.tensor([[0.5, 2.0, 0.3], [0.4, 1.5, -1.0]])"

opaque.write(
    "packed sequences",
    """
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


    class Model(nn.Module):
        def __init__(self, dim=3, hidden=2):
            super().__init__()
            self.rnn = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
            self.out = nn.Linear(2 * hidden, 1)
            self.scale = 1.0

        def forward(self, x, lengths):
            x = x.unsqueeze(-1).repeat(1, 1, 3) * self.scale
            packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            output, (h, c) = self.rnn(packed)
            output, _ = pad_packed_sequence(output, batch_first=True, total_length=x.shape[1])
            return self.out(output).squeeze(-1), h, c
    """,
    f"{_ONE}, torch.tensor([3, 2])",
    f"{_TWO}, torch.tensor([1, 3])",
)
opaque.write(
    "a recurrent layer with a state that is kept",
    """
    class Model(nn.Module):
        def __init__(self, dim=3):
            super().__init__()
            self.gru = nn.GRU(dim, dim, num_layers=2, dropout=0.5)
            self.norm = nn.LayerNorm(dim)
            self.hidden = None
            self.momentum = 0.5

        def reset(self):
            self.hidden = None

        def forward(self, x):
            seq = x.unsqueeze(1)
            out, hidden = self.gru(self.norm(seq), self.hidden)
            self.hidden = hidden.detach()
            return out.squeeze(1) * self.momentum, hidden
    """,
    _ONE,
    _TWO,
)
opaque.write(
    "greedy suppression",
    """
    class Model(nn.Module):
        def __init__(self, threshold=0.5, low=0.1):
            super().__init__()
            self.threshold = threshold
            self.low = low
            self.score = nn.Linear(3, 1)

        def iou(self, one, others):
            top = torch.maximum(one[:2], others[:, :2])
            end = torch.minimum(one[2:], others[:, 2:])
            inter = (end - top).clamp(min=0).prod(-1)
            area = (others[:, 2:] - others[:, :2]).prod(-1)
            return inter / (area + (one[2:] - one[:2]).prod() - inter + 1e-6)

        def forward(self, x, boxes):
            scores = self.score(x).sigmoid().squeeze(-1).detach()
            keep = torch.zeros(boxes.shape[0], dtype=torch.bool)
            left = scores > self.low
            while left.any():
                best = (scores * left).argmax()
                keep[best] = True
                left = left & (self.iou(boxes[best], boxes) < self.threshold)
                left[best] = False
            return keep, boxes * keep[:, None], scores
    """,
    "torch.ones(3, 3), torch.tensor([[0.0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 3, 3]])",
    "torch.zeros(3, 3), torch.tensor([[0.0, 0, 1, 1], [0, 0, 2, 2], [1, 1, 3, 3]])",
)
opaque.write(
    "a decoding loop that stops early",
    """
    class Model(nn.Module):
        def __init__(self, classes=4, dim=3, stop=0, longest=5):
            super().__init__()
            self.embed = nn.Embedding(classes, dim)
            self.cell = nn.GRUCell(dim, dim)
            self.out = nn.Linear(dim, classes)
            self.stop, self.longest = stop, longest

        def forward(self, h):
            token = torch.full((h.shape[0],), 1)
            done = torch.zeros(h.shape[0], dtype=torch.bool)
            total = torch.zeros(h.shape[0])
            steps = 0
            while not done.all() and steps < self.longest:
                h = self.cell(self.embed(token), h)
                logits = self.out(h).log_softmax(-1)
                value, token = logits.max(-1)
                total = total + torch.where(done, 0.0, value)
                done = done | (token == self.stop)
                steps += 1
            return total, h, steps
    """,
    _ONE,
    _TWO,
)
opaque.write(
    "fixed point iterations",
    """
    class Model(nn.Module):
        def __init__(self, tol=1e-2, most=20):
            super().__init__()
            self.tol, self.most = tol, most
            self.f = nn.Linear(3, 3)
            self.register_buffer("calls", torch.tensor(0))

        def forward(self, x):
            z = torch.zeros_like(x)
            step, gap = 0, torch.tensor(1.0)
            while gap > self.tol and step < self.most:
                new = torch.tanh(self.f(z) * 0.3 + x)
                gap = (new - z).abs().max().detach()
                z = new
                step += 1
            self.calls += step
            return z, gap
    """,
    _ONE,
    _TWO,
)
opaque.write(
    "a memory of slots",
    """
    class Bank(nn.Module):
        def __init__(self, slots=3, dim=3):
            super().__init__()
            self.register_buffer("keys", torch.zeros(slots, dim))
            self.register_buffer("ages", torch.zeros(slots, dtype=torch.long))
            self.writes = 0

        @torch.no_grad()
        def update(self, feats, good):
            for feat in feats[good]:
                slot = int(self.ages.argmax())
                self.keys[slot] = feat
                self.ages += 1
                self.ages[slot] = 0


    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.bank = Bank()
            self.proj = nn.Linear(3, 3)
            self.threshold = 0.0

        def forward(self, x):
            feats = self.proj(x)
            good = feats.sum(-1) > self.threshold
            before = self.bank.keys.clone()
            self.bank.update(feats.detach(), good)
            return feats @ self.bank.keys.t(), before
    """,
    _ONE,
    _TWO,
)
opaque.write(
    "segments that the data bounds",
    """
    def pooled(x, ids, count):
        out = x.new_zeros(count, x.shape[1])
        for i in range(count):
            rows = x[ids == i]
            if rows.shape[0] > 0:
                out[i] = rows.mean(0)
        return out


    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 3)
            self.k = 2

        def forward(self, x, ids):
            h = self.lin(x)
            n = int(ids.max()) + 1
            first = pooled(h, ids, n)
            top = torch.topk(h.sum(-1), min(self.k, int((h.sum(-1) > 0).sum()))).indices
            return first.sum(0), h[top].sum(0)
    """,
    f"{_ONE}, torch.tensor([0, 1])",
    f"{_TWO}, torch.tensor([2, 2])",
)
