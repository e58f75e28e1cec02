"""Losses as authors of detectors, segmenters and depth estimators write them, in the company that finds wrong facts."""

from tests.adversarial.cases.authoring import Authored

losses = Authored("authored losses")

losses.write(
    "focal loss by positives",
    '''
    class Model(nn.Module):
        """Sigmoid focal loss with the number of positives as the normaliser."""

        def __init__(self, alpha=0.25, gamma=2.0, weight=1.0):
            super().__init__()
            self.alpha = alpha
            self.gamma = gamma
            self.loss_weight = weight
            self.head = nn.Linear(3, 3)

        def forward(self, x, labels):
            logits = self.head(x)
            target = labels.type_as(logits)
            prob = logits.sigmoid()
            pt = (1 - prob) * target + prob * (1 - target)
            modulating = (self.alpha * target + (1 - self.alpha) * (1 - target)) * pt.pow(self.gamma)
            loss = F.binary_cross_entropy_with_logits(logits, target, reduction="none") * modulating
            num_pos = (labels > 0).sum().item()
            num_pos = max(num_pos, 1.0)
            total = loss.sum() / num_pos
            return total * self.loss_weight
    ''',
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([[1, 0, 0], [0, 1, 0]])",
    "torch.tensor([[0.1, 2.0, 0.3], [0.4, 1.5, -1.0]]), torch.tensor([[0, 0, 0], [0, 0, 0]])",
)
losses.write(
    "gradient harmonizing",
    """
    class Model(nn.Module):
        def __init__(self, bins=4, momentum=0.5, use_sigmoid=True):
            super().__init__()
            self.bins = bins
            self.momentum = momentum
            edges = torch.arange(bins + 1).float() / bins
            self.register_buffer("edges", edges)
            self.edges[-1] += 1e-6
            if momentum > 0:
                acc_sum = torch.zeros(bins)
                self.register_buffer("acc_sum", acc_sum)

        def forward(self, pred, target):
            target = target.float()
            edges = self.edges
            mmt = self.momentum
            weights = torch.zeros_like(pred)
            g = torch.abs(pred.sigmoid().detach() - target)
            valid = target >= 0
            tot = max(valid.float().sum().item(), 1.0)
            n = 0
            for i in range(self.bins):
                inds = (g >= edges[i]) & (g < edges[i + 1]) & valid
                num_in_bin = inds.sum().item()
                if num_in_bin > 0:
                    if mmt > 0:
                        self.acc_sum[i] = mmt * self.acc_sum[i] + (1 - mmt) * num_in_bin
                        weights[inds] = tot / self.acc_sum[i]
                    else:
                        weights[inds] = tot / num_in_bin
                    n += 1
            if n > 0:
                weights = weights / n
            loss = F.binary_cross_entropy_with_logits(pred, target.clamp(min=0), weights, reduction="sum") / tot
            return loss
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([[1, 0, 0], [0, 1, -1]])",
    "torch.tensor([[0.1, 2.0, 0.3], [0.4, 1.5, -1.0]]), torch.tensor([[-1, -1, -1], [-1, -1, -1]])",
)
losses.write(
    "gradient harmonizing without momentum",
    """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.bins = 3
            self.register_buffer("edges", torch.tensor([0.0, 0.3, 0.6, 1.1]))

        def forward(self, pred: torch.Tensor, target: torch.Tensor, mu: float = 0.02):
            diff = pred - target
            loss = torch.sqrt(diff * diff + mu * mu) - mu
            g = torch.abs(diff / torch.sqrt(mu * mu + diff * diff)).detach()
            weights = torch.zeros_like(g)
            valid = target > 0
            tot = max(valid.sum().item(), 1.0)
            n = 0
            for i in range(self.bins):
                inds = (g >= self.edges[i]) & (g < self.edges[i + 1]) & valid
                num_in_bin = inds.sum().item()
                if num_in_bin > 0:
                    n += 1
                    weights[inds] = tot / num_in_bin
            if n > 0:
                weights /= n
            loss = loss * weights
            return loss.sum() / tot
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([[1.0, 0.5, 2.0], [4.0, 1.0, 0.0]])",
    "torch.tensor([[0.1, 2.0, 0.3], [0.4, 1.5, -1.0]]), torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])",
)
losses.write(
    "balanced edges",
    '''
    class Model(nn.Module):
        """Class-balanced cross entropy of edge detectors: rare classes weigh more."""

        def __init__(self):
            super().__init__()
            self.side = nn.Linear(3, 3)

        def forward(self, x, mask):
            prediction = torch.sigmoid(self.side(x))
            mask = mask.float()
            num_positive = torch.sum(mask == 1.0).float().item()
            num_negative = torch.sum(mask == 0.0).float().item()
            alpha = num_negative / (num_positive + num_negative)
            beta = 1.1 * num_positive / (num_positive + num_negative)
            weights = torch.zeros_like(prediction)
            weights[mask == 1] = alpha
            weights[mask == 0] = beta
            weights[mask == 2] = 0
            cost = F.binary_cross_entropy(prediction, mask.clamp(max=1), weight=weights.detach(), reduction="none")
            return cost.sum(), weights
    ''',
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([[1, 0, 2], [0, 1, 0]])",
    "torch.tensor([[0.1, 2.0, 0.3], [0.4, 1.5, -1.0]]), torch.tensor([[0, 0, 0], [0, 0, 0]])",
    "torch.tensor([[0.1, 2.0, 0.3], [0.4, 1.5, -1.0]]), torch.tensor([[2, 2, 2], [2, 2, 2]])",
)
losses.write(
    "hard example mining",
    """
    class Model(nn.Module):
        def __init__(self, ratio=3.0, eps=1e-6):
            super().__init__()
            self.negative_ratio = ratio
            self.eps = eps

        def forward(self, pred, gt, mask):
            positive = (gt * mask).byte().float()
            negative = ((1 - gt) * mask).byte().float()
            positive_count = int(positive.sum())
            negative_count = min(int(negative.sum()), int(positive_count * self.negative_ratio))
            loss = F.binary_cross_entropy(pred.sigmoid(), gt, reduction="none")
            positive_loss = loss * positive
            negative_loss = loss * negative
            negative_loss, _ = torch.topk(negative_loss.view(-1), negative_count)
            balance = (positive_loss.sum() + negative_loss.sum()) / (positive_count + negative_count + self.eps)
            return balance
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([[1.0, 0, 0], [0, 1, 0]]), torch.ones(2, 3)",
    "torch.tensor([[0.1, 2.0, 0.3], [0.4, 1.5, -1.0]]), torch.zeros(2, 3), torch.ones(2, 3)",
)
losses.write(
    "masked depth losses",
    """
    def masked_scale_invariant(pred, target, lambd):
        diff_log = torch.log(target) - torch.log(pred)
        return torch.sqrt(torch.pow(diff_log, 2).mean() - lambd * torch.pow(diff_log.mean(), 2))


    class Model(nn.Module):
        def __init__(self, lambd=0.5, low=0.1, high=8.0):
            super().__init__()
            self.lambd = lambd
            self.low = low
            self.high = high

        def forward(self, pred, target, valid_mask=None):
            pred = F.softplus(pred) + 1e-3
            if valid_mask is None:
                valid_mask = (target > self.low) & (target < self.high)
            valid_mask = valid_mask.detach()
            l1 = (pred[valid_mask] - target[valid_mask]).abs().mean()
            diff_log = torch.log(target[valid_mask]) - torch.log(pred[valid_mask])
            silog = torch.sqrt(torch.pow(diff_log, 2).mean() - self.lambd * torch.pow(diff_log.mean(), 2))
            return silog + l1
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([[1.0, 0.5, 2.0], [4.0, 1.0, 0.0]])",
    "torch.tensor([[0.1, 2.0, 0.3], [0.4, 1.5, -1.0]]), torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])",
    "torch.tensor([[0.1, 2.0, 0.3]]), torch.tensor([[1.0, 2.0, 9.0]]), torch.tensor([[True, False, True]])",
)
losses.write(
    "iou with an empty union",
    '''
    class Model(nn.Module):
        """Per-class IoU that skips classes that no pixel has."""

        def __init__(self, classes=3, smooth=1.0):
            super().__init__()
            self.classes = classes
            self.smooth = smooth
            self.register_buffer("seen", torch.zeros(classes))

        def forward(self, logits, target):
            probs = logits.softmax(dim=-1)
            total = logits.sum() * 0
            count = 0
            for c in range(self.classes):
                chosen = target == c
                area = chosen.sum().item()
                if area > 0:
                    count += 1
                    self.seen[c] = 0.9 * self.seen[c] + 0.1 * area
                inter = (probs[..., c] * chosen).sum()
                total = total + inter / (area + self.smooth)
            if count > 0:
                total = total / count
            return 1 - total
    ''',
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([1, 2])",
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([7, 9])",
)
losses.write(
    "adaptive weight of a discriminator",
    """
    class Model(nn.Module):
        def __init__(self, disc_start=1, disc_weight=0.8):
            super().__init__()
            self.last = nn.Linear(3, 3)
            self.discriminator_iter_start = disc_start
            self.discriminator_weight = disc_weight
            self.register_buffer("steps", torch.zeros((), dtype=torch.long))

        def forward(self, x, rec):
            out = self.last(x)
            nll = (out - rec).abs().mean()
            g = -out.mean()
            scale = nll.item() / (abs(g.item()) + 1e-4)
            low = out.min().item()
            high = out.max().item()
            spread = max(high - low, 1e-6)
            normed = (out - low) / spread
            weight = min(max(scale, 0.0), 1e4) * self.discriminator_weight
            self.steps += 1
            return nll + weight * g, normed
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.ones(2, 3)",
    "torch.zeros(2, 3), torch.ones(2, 3)",
)
losses.write(
    "min-max of a saliency map",
    """
    def normalise(x, eps=1e-8):
        low = x.min().item()
        high = x.max().item()
        return (x - low) / (high - low + eps)


    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(2, 2, 1)
            self.peak = 0.0

        def forward(self, x):
            y = F.relu(self.conv(x.unsqueeze(0)).squeeze(0))
            y = normalise(y)
            low, high = y.min().item(), y.max().item()
            y = (y - low) / max(high - low, 1e-8)
            if high > 0.5:
                y = y / high
            return y
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])",
    "torch.zeros(2, 3)",
)
losses.write(
    "label smoothing over what is not padding",
    """
    class Model(nn.Module):
        def __init__(self, size=3, padding_idx=0, smoothing=0.1):
            super().__init__()
            self.padding_idx = padding_idx
            self.smoothing = smoothing
            self.size = size

        def forward(self, x, target):
            x = x.log_softmax(-1)
            true_dist = torch.full_like(x, self.smoothing / (self.size - 2))
            true_dist.scatter_(1, target.unsqueeze(1), 1.0 - self.smoothing)
            true_dist[:, self.padding_idx] = 0
            mask = target == self.padding_idx
            if mask.any():
                true_dist[mask] = 0.0
            loss = F.kl_div(x, true_dist, reduction="none").sum(-1)
            tokens = (~mask).sum().item()
            kept = loss.masked_select(~mask)
            return kept.sum() / max(tokens, 1), loss[~mask].mean()
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([1, 0])",
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.tensor([0, 0])",
)
losses.write(
    "quantile loss by regions",
    """
    class Model(nn.Module):
        def __init__(self, beta=0.5):
            super().__init__()
            self.beta = beta

        def huber(self, error):
            small = error < self.beta
            out = torch.zeros_like(error)
            if small.any():
                out[small] = 0.5 * error[small] ** 2 / self.beta
            large = ~small
            if large.any():
                out[large] = error[large] - 0.5 * self.beta
            return out

        def forward(self, pred, target, weight=None):
            error = (pred - target).abs()
            loss = self.huber(error)
            pos = weight > 0 if weight is not None else error > -1
            n = pos.sum().item()
            if n > 0:
                loss = loss / n
            return (loss * pos).sum()
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]]), torch.ones(2, 3)",
    "torch.ones(2, 3), torch.ones(2, 3), torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])",
    "torch.ones(2, 3), torch.ones(2, 3), torch.zeros(2, 3)",
)
losses.write(
    "contrastive with hard pairs",
    """
    class Model(nn.Module):
        def __init__(self, margin=0.5, temperature=0.1):
            super().__init__()
            self.margin = margin
            self.temperature = temperature

        def forward(self, feats: torch.Tensor, labels: torch.Tensor):
            feats = F.normalize(feats, dim=1)
            sim = feats @ feats.t()
            same = labels[:, None] == labels[None, :]
            eye = torch.eye(labels.shape[0], dtype=torch.bool, device=labels.device)
            pos = sim[same & ~eye]
            neg = sim[~same]
            off = sim[~eye].view(labels.shape[0], -1)
            hard = sim.max().item()
            easy = sim.min().item()
            sim = (sim - easy) / (hard - easy + 1e-6)
            count = max((same & ~eye).sum().item(), 1)
            loss = (sim * (same & ~eye)).sum() / count
            return loss + off.mean() + pos.sum() - neg.clamp(min=self.margin).sum()
    """,
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0], [1.0, 2.0, 0.0]]), torch.tensor([0, 1, 0])",
    "torch.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0], [1.0, 2.0, 0.0]]), torch.tensor([0, 1, 2])",
)
