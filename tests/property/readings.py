"""Pieces that read numbers, lengths and places out of tensors.

`{t}` and `{u}` stand for tensors, `{m}` for a bool tensor of their shape, `{n}` for a small number.
"""

from __future__ import annotations

NUMBERS = (
    "number = {t}.max().item()\n{t} = {t} / number",
    "number = {t}.sum().item()\n{t} = {t} * number + number",
    "number = int({m}.sum())\nif number > 99:\n    raise ValueError(f'{{number}} masked')",
    "number = {m}.sum().item()\nassert number < 99, f'{{number}} masked'",
    "masked = {m}.all().item()\nif masked and flag:\n    raise ValueError('masked')",
    "masked = bool({m}.any())\nif masked:\n    {t} = {t} * 2.0",
    "shapes = torch.as_tensor(pairs, dtype=torch.long)\nfor rows, columns in shapes:\n"
    "    {t} = {t} + torch.arange(columns).sum() * rows",
    "shapes = torch.tensor(pairs)\nscale = torch.ones(1)\nfor i, (rows, columns) in enumerate(shapes):\n"
    "    scale = scale * (columns + i)\n    other = torch.zeros(rows)\n{t} = {t} * scale",
    "counts = [1, {t}.shape[0] - 1]\nlengths = torch.tensor(counts)\n{t} = torch.cat({t}.split(lengths.tolist()))",
    "{t} = {t} + segments({t}.long())",
    "rows = torch.where({m})[0]\n{t} = self.part({t}, rows)",
    "rows = torch.where({m})[0]\n{t} = self.part({u}, rows)",
    "{t} = {t} + {t}[mask].sum()",
    "{t}[torch.where({t}.sum(-1) > 0)] = 0.5",
    "chosen = {t}.argmax(-1)\nspread = torch.zeros_like({t})\nfor i in range(len(self.experts)):\n"
    "    spread[chosen == i] = self.experts[i]({t}[chosen == i])\n{t} = {t} + spread",
    "chosen = {t}.argmax(-1)\nspread = torch.zeros_like({t})\nfor i, expert in enumerate(self.experts):\n"
    "    spread[chosen == i] = expert({t}[chosen == i])\n{t} = {t} + spread",
    "{t} = {t}.reshape({t}.shape[0], np.prod({t}.shape[1:]))\nseen = {t}.float()[None]\n"
    "causal = flag and {t}.shape[0] > 1\n"
    "{t} = {t} - nn.functional.scaled_dot_product_attention(seen, seen, seen, is_causal=causal)[0]",
    "steps = {m}.sum()\n{t} = torch.roll({t}, -int(steps), -1)",
    "steps = {t}.argmax()\n{t} = torch.roll({t}, int(steps), 0)",
    "place = {t}.sum(0).argmax()\n{t} = {t} + {t}[:, place].relu().unsqueeze(1)",
    "spread, chosen = torch.zeros_like({t}), {t} > {n}\nspread[chosen] = torch.exp({t}[chosen] * 0.1)\n"
    "{t} = spread + {t}",
    "sides = ['left', 'right']\npicked = [side == 'left' for side in sides]\ntable = torch.ones(3, 2)\n"
    "table[..., picked] = table[..., picked] * 2\n{t} = {t} * table.sum()",
    "sides = ['left', 'right', 'left']\npicked = [side == 'left' for side in sides]\n"
    "{t} = {t} * torch.ones(2, 3)[:, picked].sum()",
    "sides = ['a', 'b']\npicked = [side != 'b' for side in sides]\ntable = {t}.new_ones(2)\n"
    "{t} = {t} + table[picked].sum()",
    "if flag and not torch.all({m} == 1):\n    {t} = {t} * {m}",
    "steps = np.ceil(np.log1p({t}.shape[0])).astype(int).item()\n{t} = {t} * steps\nseen = {t}.float()[None]\n"
    "width = {t}.shape[1]\n"
    "{t} = {t} + nn.functional.scaled_dot_product_attention(seen, seen, seen, is_causal=width > 1)[0]",
    "spread = torch.zeros_like({t})\ntorch._dynamo.mark_static_address(spread)\n{t} = {t} + spread",
    "torch._dynamo.maybe_mark_dynamic({t}, 0)\ntorch._dynamo.maybe_mark_dynamic({u}, 0)",
    "rate = 0.0\ndrawn = torch.rand([])\nif self.training and drawn < rate:\n    {t} = {t} * 2.0",
    "if {t}.sum() > {n} and flag:\n    {t} = self.linear({t})",
    "spread = torch.zeros_like({t})\nspread.requires_grad = False\n{t} = {t} + spread",
    "spread = torch.ones_like({u})\nspread.requires_grad = False\n{t} = {t} * spread",
    "{t} = {t} + torch.autograd.Variable({t}, requires_grad=False)",
    "spread = {t}.clone()\nspread.add_(2, {u})\n{t} = {t} + torch.autograd.Variable(spread)",
    "start = {m}.sum()\nplaces = torch.arange(start, start + {t}.shape[0], device={t}.device)\n"
    "{t} = {t} * places[:, None]",
    "places = None\nif places is None:\n    places = torch.arange({t}.shape[0])\nlength = places[-1] + 1\n"
    "{t} = {t} * torch.ones(length)[:, None]",
    "places = None\nif places is None:\n    places = torch.arange(1, 1 + {t}.size(0))\nlength = places[-1] + 1\n"
    "{t} = {t} + torch.arange(length).sum()",
    "marks = {t} > {n}\nmarked = marks.any().item()\n{t} = self.marks({t}, marks, marked)",
    "with torch.enable_grad():\n    leaf = {t}.float().clone().requires_grad_()\n    slope = (leaf * leaf).sum()\n"
    "{t} = {t} + torch.autograd.grad(slope, leaf)[0]",
    "marks = {t} > 0\nmarked = bool(marks.any())\n{t} = self.marks({t}, marks, marked) * 2",
    "marks = {t} > {n}\nmarked = marks.any().item()\n{t} = self.choice({t}, marked)",
    "with torch.enable_grad():\n    leaf = {t}.float().clone().requires_grad_()\n    slope = leaf.exp().mean()\n"
    "{t} = {t} + torch.autograd.grad(slope, leaf)[0]",
    "with torch.enable_grad():\n    leaf = {t}.float().clone().requires_grad_()\n    slope = leaf.sin().sum()\n"
    "{t} = {t} + torch.autograd.grad(slope, leaf)[0]",
    "if mask is not None and not torch.all({m} == 1):\n    {t} = {t} * {m}",
    "if torch.any(mask != 1):\n    {t} = {t} * mask[:, :]",
    "start = {t}.argmax()\nplaces = torch.arange(start, start + 4)\n{t} = {t}.sum() + places",
    "{t} = {t} + self.border({t}).sum()",
    "channels = torch.IntTensor([self.wide])\n{t} = gated({t}, channels[0])",
    "channels = torch.IntTensor([self.wide])\n{t} = gated({t}, channels[0]) + {u}[:, channels[0] :].sum()",
    "{t} = self.counting({t})",
    "{t} = self.counting({t}) + self.counting({u}, torch.arange(1, 5))",
    "copied, chosen = torch.zeros_like({t}), {t} > {n}\ncopied[chosen] = {t}[chosen]\n{t} = copied + {t}",
    "copied, chosen = {t}.clone(), {t} < 0\ncopied[chosen] = {u}[chosen]\n{t} = copied * 2",
    "{t} = self.border({t})[..., : {t}.shape[-1]]",
    "counts = [1, {t}.shape[0] - 1]\nlengths = torch.as_tensor(counts)\n{u} = torch.cat({t}.split(lengths.tolist()))",
    "whole = torch.cat([torch.as_tensor([-1]), torch.as_tensor({t}.shape[1:], dtype=torch.long)])\n"
    "{t} = {t}.reshape(whole.tolist())",
    "whole = torch.cat([torch.as_tensor({t}.shape[:1], dtype=torch.long), torch.as_tensor([-1])], dim=0)\n"
    "{u} = {t}.reshape(whole.tolist()) * 2",
)
"""Numbers and rows that are read out of tensors; `pairs` is a list of sizes."""

MASKS_OR_NONE = (
    "{t} = self.rows({t}, mask[: len({t})])",
    "{t} = self.rows({t}, {t} > 0)",
    "{t} = self.rows({t}, {m}[: len({t})].long())",
    "{t} = self.rows({t}, {m}[: len({t})].long() * 2)",
    "{t} = self.rows({t}, {m}[: len({t})].float())",
    "{t} = self.rows({t}, torch.ones({t}.shape, dtype=torch.long))",
    "{t} = self.rows({t}, torch.ones_like({t}, dtype=torch.bool))",
    "{t} = self.rows({t}) + self.rows({u}, {u} > {n})",
    "{t} = self.rows({t}, None)",
    "{t} = self.rows({t}, {m}[: len({t})], torch.arange(3, 3 + {t}.shape[1]))",
    "{t} = self.rows({t}, mask[: len({t})], torch.arange({t}.shape[1]))",
    "{t} = self.rows({t}, mask[: len({t}), -1:], torch.arange(3, 4))",
    "{t} = {t} + self.seen({u}[None], ({u} > {n}).any(-1)[None])[0]",
    "{t} = self.seen({t}[None], {t}[None, :, 0] > {n})[0]",
    "{t} = self.seen(torch.stack([{t}, {t}]), torch.ones(2, {t}.shape[0], dtype=torch.bool))[1]",
)
"""Masks, ones and None for a layer that leaves out products with ones. No mask has more rows than what it masks."""

TESTED = (
    "seen = {found}\nif {test}:\n    {body}",
    "seen = {found}\nif {test}:\n    {body}\nelse:\n    {u} = {u} + 1",
    "seen = {found}\n{t} = {t} * 2.0 if {test} else {t}.exp()",
    "seen = {found}\n{t}.add_(1)\nif {test}:\n    {body}",
    "seen = {found}\nif {test}:\n    {body}\nif seen:\n    {u} = {u} * 0.5",
    "seen = {found}\nassert {test}, 'not seen'",
    "seen = {found}\nif {test}:\n    raise ValueError('seen')",
    "seen = {found}\nif {test}:\n    return {t} * 0.5",
)
"""Numbers and flags in names that are tested further down."""
TESTED_VALUES = (
    *("{m}.sum().item()", "int({m}.sum())", "{t}.mean().item()", "float({t}.abs().max())", "{t}.long().sum().item()"),
    *("bool({m}.any())", "not {m}.all().item()", "torch.equal({t}, {u})", "torch.allclose({t}, {u})"),
    *(
        "not {m}.any()",
        "{m}.any() and {t}.sum() > 0",
        "flag and {m}.all()",
        "0 < {t}.max() < 3",
        "{t}.isnan().any() or flag",
    ),
    *("{t}.max().item() > 1", "{m}.any().item()", "torch.is_nonzero({t}.sum())", "not bool({t}.isnan().any())"),
)
TESTS = ("seen", "not seen", "seen > 0", "seen >= 0.5", "seen == 0", "seen < 3", "seen and flag", "0.1 > seen")
TESTED_BODIES = (
    "{t} = {t} * 2.0",
    "{t} = {t}.exp()",
    "{t} = {t} / seen",
    "{t} = torch.where({m}, {t}, -{t})",
    "{u} = {t} + {u}",
)

GROWING = (
    "grown = {t}.shape[-1]\nif {test}:\n    grown = grown + 1\n"
    "{t} = {t} * (torch.arange(4, device={t}.device) * grown)",
    "grown = {t}.shape[-1]\nif {test}:\n    grown = grown + {by}\n"
    "{t} = {t} + (grown - torch.arange(4, device={t}.device))",
    "places, grown = {t}.argsort(-1), 4\nif {test}:\n    grown = grown + 1\n    kept = {m}.expand(places.shape)\n"
    "    places = torch.where(kept, places, grown - 1)\n"
    "{t} = {t} + places * (torch.arange(4, device={t}.device) + grown)",
    "places = {t}.argmax(-1)\ngrown = {t}.shape[-1]\nif {test}:\n    grown = grown + 1\n"
    "    places = torch.where({m}[:, 0].expand(places.shape), places, torch.tensor(grown - 1, dtype=torch.long))\n"
    "spread = torch.arange(2, device={t}.device) * grown\n{t} = {t} + (places[..., None] + spread).sum()",
    "grown = {t}.shape[0]\nif {test}:\n    grown = grown + {by}\n"
    "{t} = {t} * (torch.arange(4, device={t}.device, dtype=torch.{dtype}) + grown)",
    "grown = flag\nif {test}:\n    grown = grown + 1\n{t} = {t} * (torch.arange(4, device={t}.device) * grown)",
    "grown = self.limit\nif {test}:\n    grown = grown + 1\n{t} = {t} * (torch.arange(4, device={t}.device) * grown)",
    "grown = 2\nif {test}:\n    grown = grown + 1\n{t} = torch.stack([{t} * each for each in range(grown)]).sum(0)",
    "grown = 2\nif {test}:\n    grown = grown + {by}\n{t} = {t} * (torch.arange(4, device={t}.device) % grown)",
)
"""Numbers that grow where `{test}` is true."""

CUT_TABLES = (
    "count, places = {t}.shape[0], {places}\nparts = [each.expand((count,) + (6, 4) + each.shape[-1:]) "
    "for each in self.tables]\n"
    "last = places.max().item()\ncolumns = -(-(last + 1) // 4)\n"
    "table = torch.cat([part[:, :columns] for part in parts], dim=-1)\n"
    "table = torch.reshape(table, (count, -1, table.shape[-1]))\n"
    "table = torch.cat([torch.index_select(table[i], 0, places[i]).unsqueeze(0) for i in range(count)], dim=0)\n"
    "{t} = {t} + table[..., 0]",
    "places = {places}\ncount = len(places)\nparts = [each.expand(count, 6, 4, each.shape[-1]) "
    "for each in self.tables]\n"
    "last = int(places.max())\nrows = last // 4 + 1\n"
    "table = torch.cat([part[:, :rows] for part in parts], dim=-1)\n"
    "table = table.reshape(count, -1, table.shape[-1])\n"
    "table = torch.stack([torch.index_select(table[i], 0, places[i]) for i in range(count)])\n"
    "{t} = {t} * table.sum(-1)",
    "places = {places}\ncount = {t}.shape[0]\nparts = [each[0, 0].expand(count, 24, each.shape[-1]) "
    "for each in self.tables]\n"
    "last = places.max().item()\nrows = last + 1\n"
    "table = torch.cat([part[:, :rows] for part in parts], dim=-1)\n"
    "table = table.reshape(count, -1, table.shape[-1])\n"
    "table = torch.stack([torch.index_select(table[i], 0, places[i]) for i in range(count)])\n"
    "{t} = {t} * table.sum(-1)",
)
"""Tables of which `{places}` picks rows."""

PICKS = (
    "{t}.argsort(-1)",
    "{t}.argsort(-1) * 7",
    "{m}.long() * 23",
    "({t} > 0).long() * 5",
    "{t}.argsort(-1).int()",
    "{t}.argsort(-1) - 1",
    "({t} > 9).long()",
)

FOUND_PLACES = (
    "ends = {ends}\nfound = torch.where({found})\nends[found[0]] += found[1]\n{t} = {t} + ends.sum()",
    "ends = {ends}\nrows, columns = torch.where({found})\nends[rows] = columns\n{t} = {t} * ends[:, None]",
    "ends = {ends}\nrows, columns = torch.where({found})\nends[rows] -= columns\n{t} = {t} + ends.max()",
    "ends = {ends}\nplaces = ({found}).nonzero()\nends[places[:, 0]] = {fill}\n{t} = {t} + ends[:, None]",
    "spread = {like}\nrows, columns = torch.where({found})\nspread[rows, columns] = {fill}\n{t} = {t} + spread",
    "spread = {like}\nfound = torch.where({found})\nspread[found] = {fill}\nspread[found[0]] = {fill}\n"
    "{t} = {t} - spread",
    "spread = {like}\nrows, columns = ({found}).nonzero(as_tuple=True)\nspread[rows] = {fill}\n{t} = {t} * spread",
    "ends = {ends}\nchosen = {found}\nrows, columns = torch.where(chosen)\nends[rows] = columns\n"
    "ends[rows] += columns\n{t} = {t} + ends.sum()",
    "chosen = {found}\nrows, columns = torch.where(chosen)\nchosen[rows, columns] = False\nchosen[rows] = True\n"
    "{t} = {t} * chosen",
    "ends = {ends}\nother = ends[:]\nrows, columns = torch.where({found})\nends[rows] = columns\n"
    "{t} = {t} + other.sum()",
    "ends = {ends}\nrows, columns = torch.where({found})\nends[rows] *= columns\n{t} = {t} + ends.sum() + len(rows)",
)
"""Writes into `{ends}`, one a row, or `{like}`, of the shape of `{t}`, where `{found}` is true."""

ROWS_FILLED = (
    "filled, lengths = {like}, {lengths}\nfor i, length in enumerate(lengths):\n    filled[i, :length] = {fill}\n"
    "{t} = {t} * filled",
    "filled = {like}\nlengths = {lengths}\nfor i, length in enumerate(lengths):\n    filled[i, :length] = {fill}\n"
    "{t} = {t} * filled",
    "lengths = {lengths}\nfilled = {like}\nfor i in range(len(lengths)):\n    filled[i, lengths[i]:] = {fill}\n"
    "{t} = {t} + filled",
    "lengths = {lengths}\nfilled = {like}\nfor i in range(filled.shape[0]):\n    filled[i, :lengths[i]] = {fill}\n"
    "{t} = {t} + filled",
    "lengths = {lengths}\nwide = torch.zeros({t}.shape[0], 300)\nfor i, length in enumerate(lengths):\n"
    "    wide[i, length:] = {fill}\n{t} = {t} + wide.sum()",
    "lengths = {lengths}\ndeep = torch.zeros({t}.shape[0], 4, 2)\nfor i, length in enumerate(lengths):\n"
    "    deep[i, :length] = {fill}\n{t} = {t} + deep.sum(-1)",
    "lengths = {lengths}\nfilled = lengths[:, None] * 1\nfor i, length in enumerate(lengths):\n"
    "    filled[i, :length] = length\n{t} = {t} + filled",
)
"""Loops that fill the rows of `{like}` up to `{lengths}`."""

LENGTHS = (
    "{m}.sum(-1)",
    "({t} > 0).sum(-1)",
    "({t} > 0).sum(-1) - 2",
    "{m}.sum(-1) * -3",
    "{m}.sum(-1).to(torch.int8) - 2",
    "{m}.sum(-1).to(torch.uint8)",
    "{m}.any(-1)",
    "{m}.sum(-1).float()",
    "torch.full(({t}.shape[0],), 9)",
    "{m}.sum(-1)[:1]",
)

LIKE = (
    "torch.zeros_like({t})",
    "torch.zeros_like({t})",
    "torch.ones({t}.shape[0], {t}.shape[1], dtype=torch.{dtype})",
    "torch.zeros(4, 4)[: {t}.shape[0]]",
    "{t} * 1",
    "self.norm({t})",
    "{t}",
)

ENDS = (
    "torch.zeros({t}.shape[0], dtype=torch.int64)",
    "torch.zeros({t}.shape[0], dtype=torch.long, device={t}.device)",
    "torch.ones({t}.shape[0], dtype=torch.{dtype})",
    "{t}.argmax(-1)",
    "{t}.sum(-1)",
    "torch.zeros({t}.shape[0] + 1, dtype=torch.int64)",
)

FOUND = ("{t} > 0", "{t} == {t}", "{t} > {n}", "{t} != {u}", "{m}", "{t} > 99", "{m} & ({t} > 0)", "{t}")

DTYPES = ("int64", "int32", "uint8", "float32", "float16", "bool")

LOOPS_OVER_DATA = (
    "placed = torch.zeros({t}.shape[0], 4, dtype=torch.{dtype})\nchosen = {found}\n"
    "for i, row in enumerate(chosen):\n    spots = torch.where(row)[0]\n    {body}\n{t} = {t} + placed",
    "chosen = {found}\nplaced = {like}\nfor i, row in enumerate(chosen):\n    spots = torch.where(row)[0]\n    {body}\n"
    "{t} = {t} * placed + chosen",
    "chosen = {found}\ntotal = 0\nplaced = torch.full(({t}.shape[0], 4), {n})\nfor i in range(len(chosen)):\n"
    "    row = chosen[i]\n    spots = row.nonzero()[:, 0]\n    {body}\n{t} = {t} - placed + total",
    "chosen = {found}\nplaced = torch.zeros({t}.shape[0], 4, dtype=torch.{dtype})\n"
    "for i, (row, each) in enumerate(zip(chosen, {u}.long())):\n    spots = torch.where(row)[0]\n    {body}\n"
    "    placed[i, : spots.shape[0]] += each[spots]\n{t} = {t} - placed",
)
"""Loops that fill `placed` with what `{body}` makes of the places `spots` in a row."""

BODIES = (
    "placed[i, : spots.shape[0]] = spots",
    "placed[i, spots] = spots * 2",
    "placed[i, spots] += self.limit",
    "placed[i, : spots.shape[0]] = {n}",
    "if spots.sum() > 2:\n        continue\n    placed[i, -1] = flag",
    "if len(spots) > 3:\n        break\n    placed[i, spots] = flag",
    "spots += 1\n    placed[i] = spots.sum()",
    "part = placed[i]\n    part[spots] = 1",
    "row[spots] = False\n    placed[i] = 1",
    "{t}[i, spots] = 0.5\n    placed[i] = 1",
    "placed[i, spots] = torch.randint(0, 9, spots.shape)",
    "placed[i, spots] = 1\n    {t} = {t} + spots.sum()",
    "if spots.shape[0] > 3:\n        raise ValueError(f'{{spots}} in {{i}}')\n    placed[i, spots] = 1",
    "placed[i, spots] = (spots.to(placed.dtype) + len(row)).to(placed.dtype)",
)
