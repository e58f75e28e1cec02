"""Checks and their messages."""

from tests.adversarial.case import TWO, Group

guards = Group("guards")
for name, body in {
    "and self.check behind": "if (x < 0).any() and self.check:\n    raise ValueError('negative')\nreturn x",
    "and self.check before": "if self.check and (x < 0).any():\n    raise ValueError('negative')\nreturn x",
    "print under isnan": "if torch.isnan(x).any():\n    print('nan')\nreturn x",
    "guard behind a print under isnan": "if torch.isnan(x).any():\n    print('nan')\nif (x < 0).any():\n    raise ValueError('negative')\nreturn x",
    "guard under another break": "if x.sum() > 0:\n    if (x > 3).any():\n        raise ValueError('large')\n    print(x)\nreturn x",
    "message from a variable": "message = 'negative values'\nif (x < 0).any():\n    raise ValueError(message)\nreturn x",
    "message of an assert from a variable": "message = f'negative in {tuple(x.shape)}'\nassert (x >= 0).all(), message\nreturn x",
    "message that reads the tensor": "if (x < 0).any():\n    raise ValueError(f'{x.min().item()} is negative')\nreturn x",
    "message with braces and quotes": "if (x < 0).any():\n    raise ValueError('{\"a\": 1}\\n%s \\\\ \\'x\\'')\nreturn x",
    "own exception": "if (x < 0).any():\n    raise Negative(x)\nreturn x",
    "exception with an attribute": "if (x < 0).any():\n    raise Negative(x, code=3)\nreturn x",
    "exception with effects": "if (x < 0).any():\n    raise ValueError(self.note('negative'))\nreturn x",
    "exception class": "if (x < 0).any():\n    raise ValueError\nreturn x",
    "exception from": "if (x < 0).any():\n    raise ValueError('negative') from KeyError('x')\nreturn x",
    "exception from None": "if (x < 0).any():\n    raise ValueError('negative') from None\nreturn x",
    "StopIteration": "def rows():\n    for row in x:\n        if (row < 0).any():\n            raise StopIteration('x')\n        yield row\nreturn sum(rows())",
    "KeyboardInterrupt": "if (x < 0).any():\n    raise KeyboardInterrupt\nreturn x",
    "NotImplementedError": "if (x < 0).any():\n    raise NotImplementedError('negative')\nreturn x",
    "count before raise": "if (x < 0).any():\n    self.count += 1\n    raise ValueError('negative')\nreturn x",
    "log before raise": "if (x < 0).any():\n    logger.error('negative')\n    raise ValueError('negative')\nreturn x",
    "else arm": "if (x < 0).any():\n    raise ValueError('negative')\nelse:\n    x = x.sqrt()\nreturn x",
    "elif raise": "if x.dim() > 3:\n    x = x[0]\nelif (x < 0).any():\n    raise ValueError('negative')\nreturn x",
    "raise in else": "if (x >= 0).all():\n    x = x.sqrt()\nelse:\n    raise ValueError('negative')\nreturn x",
    "several raises": "if (x < 0).any():\n    raise ValueError('negative')\nif (x > 3).any():\n    raise ValueError('large')\nreturn x.sqrt()",
    "guard that protects an operation": "if (x == 0).any():\n    raise ZeroDivisionError('zero')\nreturn 1 / x",
    "guard that protects an index": "i = x.sum().long()\nif i >= 2:\n    raise IndexError('far')\nreturn x[i]",
    "guard on an index tensor": "i = x.nan_to_num().long().abs()\nif (i > 2).any():\n    raise IndexError('far')\nreturn self.table[i]",
    "more than one element": "if x[0] > 0:\n    raise ValueError('many')\nreturn x",
    "one element by luck": "if x[:, :1] > 0:\n    raise ValueError('many')\nreturn x",
    "0-dim or not": "if (x > 0).all(-1):\n    raise ValueError('many')\nreturn x",
    "assert more than one element": "assert (x > 0).all(-1), 'many'\nreturn x",
    "assert a number": "assert x.sum() != 0\nreturn x",
    "assert a sum": "assert x.sum(), 'zero'\nreturn x",
    "assert with not": "assert not (x < 0).any(), 'negative'\nreturn x",
    "assert several": "assert (x >= 0).all() and x.dim() == 2, 'bad'\nreturn x",
    "assert or": "assert x.dim() == 2 or (x >= 0).all(), 'bad'\nreturn x",
    "assert with python first": "assert x.shape[0] == 2 and (x >= 0).all(), 'bad'\nreturn x",
    "assert of a nan": "assert not torch.isnan(x).any()\nreturn x",
    "assert with a walrus": "assert (m := x.max()) > 0, f'{m}'\nreturn x / m",
    "assert in a loop": "for row in x:\n    assert (row >= 0).all(), 'negative row'\nreturn x",
    "assert on numpy": "assert np.isfinite(x.detach().numpy()).all()\nreturn x",
    "assert equal": "assert torch.equal(x, x.abs()), 'negative'\nreturn x",
    "assert allclose": "assert torch.allclose(x.sum(-1), torch.ones(2)), 'no distribution'\nreturn x",
    "assert with effects": "assert (self.note('a') and (x >= 0).all()), 'negative'\nreturn x",
    "assert item": "assert x.max().item() < 3\nreturn x",
    "warn": "if (x < 0).any():\n    warnings.warn('negative')\nreturn x",
    "torch._assert": "torch._assert((x >= 0).all(), 'negative')\nreturn x",
    "torch._assert with a message that reads": "torch._assert(bool((x >= 0).all()), f'negative {x.min()}')\nreturn x",
    "torch._check": "torch._check(x.min().item() >= 0)\nreturn x",
    "torch.testing": "torch.testing.assert_close(x, x.abs())\nreturn x",
    "raise under no_grad": "with torch.no_grad():\n    if (x < 0).any():\n        raise ValueError('negative')\nreturn x",
    "raise in a nested function": "def check(t):\n    if (t < 0).any():\n        raise ValueError('negative')\n    return t\nreturn check(x) * 2.0",
    "raise in a lambda's function": "return apply(lambda t: check(t), x)",
    "raise in a static method": "return self.checked(x)",
    "raise in a hook": "return self.inner(x)",
    "raise in a property": "self.x = x\nreturn self.safe",
    "guard on a buffer": "if self.table.sum() > 100:\n    raise ValueError('table')\nreturn x",
    "guard on a parameter": "if torch.isnan(self.weight).any():\n    raise ValueError('weight')\nreturn x * self.weight",
    "guard on a default tensor": "if (self.table[0] > 5).all():\n    raise ValueError('table')\nreturn x",
    "guard on a shape tensor": "s = torch.tensor(x.shape)\nif (s < 2).any():\n    raise ValueError('small')\nreturn x",
    "guard on a list tensor": "sizes = [2, 3]\ns = torch.tensor(sizes)\nif s.sum() != 5:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list that is appended": "sizes = [2, 3]\ns = torch.tensor(sizes)\nsizes.append(1)\nif s.sum() != 5:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list that an alias reverses": "sizes = [[2, 3], [1, 1]]\nsame = sizes\ns = torch.tensor(sizes)\nsame[0][0] = 9\nif (s[:, 0] * s[:, 1]).sum() != 7:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list that a method changes": "s = torch.tensor(self.sizes)\nself.grow()\nif (s[:, 0] * s[:, 1]).sum() != 7:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list that a function changes": "sizes = [[2, 3], [1, 1]]\ns = torch.tensor(sizes)\ngrow(sizes)\nif (s[:, 0] * s[:, 1]).sum() != 7:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list of floats": "sizes = [0.1, 0.2]\ns = torch.tensor(sizes)\nif s.sum() != 0.3:\n    raise ValueError('sizes')\nreturn x",
    "guard on a list of bools": "flags = [True, False]\ns = torch.tensor(flags)\nif s.all():\n    raise ValueError('flags')\nreturn x",
    "guard on a list that overflows int32": "sizes = [[70000, 70000], [1, 1]]\ns = torch.tensor(sizes, dtype=torch.int32)\nif (s[:, 0] * s[:, 1]).sum() > 0:\n    return x\nraise ValueError('overflow')",
    "guard on a list of uint8": "sizes = [[20, 20], [1, 1]]\ns = torch.tensor(sizes, dtype=torch.uint8)\nif (s[:, 0] * s[:, 1]).sum() != 401:\n    raise ValueError('wrapped')\nreturn x",
    "guard on an empty list": "sizes = []\ns = torch.tensor(sizes)\nif s.sum() != 0:\n    raise ValueError('sizes')\nreturn x",
    "guard on a generator": "sizes = ((i, i) for i in range(2))\ns = torch.tensor(list(sizes))\nif s.sum() != 2:\n    raise ValueError('sizes')\nreturn x",
    "guard on a range": "s = torch.tensor(range(3))\nif s.sum() != 3:\n    raise ValueError('sizes')\nreturn x",
    "guard before del torch": "global torch\nif (x < 0).any():\n    raise ValueError('negative')\nreturn x",
}.items():
    guards.add(
        name,
        body,
        init="""
        self.check = True
        self.count = 0
        self.sizes = [[2, 3], [1, 1]]
        self.register_buffer("table", torch.ones(3, 3))
        self.weight = nn.Parameter(torch.ones(3))
        self.inner = nn.Linear(3, 3)
        """,
        methods="""
        def note(self, text):
            self.count += 1
            return text

        def grow(self):
            self.sizes[0][0] = 9

        @staticmethod
        def checked(x: torch.Tensor):
            if (x < 0).any():
                raise ValueError("negative")
            return x * 2.0

        @property
        def safe(self):
            if (self.x < 0).any():
                raise ValueError("negative")
            return self.x * 2.0
        """,
        top="""
        class Negative(Exception):
            def __init__(self, x, code=1):
                super().__init__(f"negative {tuple(x.shape)}")
                self.code = code


        def apply(function, x):
            return function(x)


        def check(t: torch.Tensor):
            if (t < 0).any():
                raise ValueError("negative")
            return t


        def grow(sizes):
            sizes[0][0] = 9
        """,
        varied=name in {"one element by luck", "and self.check before", "assert a sum"},
    )

messages = Group("messages")
for name, body in {
    "print a tensor": "print(x.sum())",
    "print a shape": "print(x.shape)",
    "print to a stream": "import sys\nprint('a', file=sys.stderr)",
    "print to own stream": "import io\nout = io.StringIO()\nprint('a', file=out)\nself.said = out.getvalue()",
    "print flush": "print('a', end='', flush=True)",
    "print effects": "print(self.note('a'))",
    "print a property with effects": "print(self.counted)",
    "print an own get": "print(self.table.get('a'))",
    "print own values": "print(list(self.table.values()))",
    "print own len": "print(len(self.table))",
    "print own str": "print(self.table)",
    "print own getitem": "print(self.table['a'])",
    "print own format": "print(f'{self.table}')",
    "print own contains": "print('a' in self.table)",
    "print a generator": "g = (self.note(i) for i in range(2))\nprint(list(g))",
    "print of next": "it = iter([1, 2])\nprint(next(it))\nself.said = next(it)",
    "print of pop": "todo = [1, 2]\nprint(todo.pop())\nself.said = len(todo)",
    "print of a walrus": "print((n := 3))\nself.said = n",
    "print of a write": "print(x.add_(1))",
    "print of an await-free lambda": "print((lambda: self.note('b'))())",
    "print of random": "print(torch.rand(2))",
    "print of python random": "import random\nprint(random.random())",
    "print of time": "import time\nself.before = time.time() > 0\nprint('at', self.before)",
    "logger of a tensor": "logger.info('mean %s', x.mean())",
    "logger with an f-string": "logger.warning(f'{x.shape} {x.dtype}')",
    "logger of effects": "logger.warning('n %s', self.note('a'))",
    "logger debug with a tensor": "logger.debug('x', extra={'x': x})",
    "logger exception": "try:\n    x.view(7)\nexcept RuntimeError:\n    logger.exception('failed')",
    "logger exc_info": "logger.warning('a', exc_info=True)",
    "logger stack_info": "logger.warning('a', stacklevel=2)",
    "logger log": "logger.log(logging.WARNING, 'a')",
    "logger method by name": "getattr(logger, 'warning')('a')",
    "logger as an attribute": "self.logger.warning('a')",
    "logger of another name": "log = logger\nlog.warning('a')",
    "root logger": "logging.warning('root')",
    "own logger class": "self.mine.warning('a')",
    "warning once a call": "for _ in range(2):\n    warnings.warn('twice')",
    "warning with a category": "warnings.warn('old', DeprecationWarning, stacklevel=2)",
    "warning as an error": "with warnings.catch_warnings():\n    warnings.simplefilter('error')\n    try:\n        warnings.warn('x')\n    except UserWarning:\n        x = x + 1.0",
    "warnings recorded": "with warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n    warnings.warn('x')\nself.said = len(seen)",
    "warn_explicit": "warnings.warn_explicit('x', UserWarning, 'f.py', 3)",
    "warning of a tensor": "warnings.warn(f'{x.sum()}')",
    "message under a tensor": "if x.sum() > 0:\n    logger.warning('positive')",
    "print under a tensor": "if x.sum() > 0:\n    print('positive')",
    "message and a write under a tensor": "if x.sum() > 0:\n    logger.warning('positive')\n    x = x + 1.0",
    "message under a flag": "if self.training:\n    logger.warning('training')",
    "message once by an attribute": "if not self.warned:\n    logger.warning('first')\n    self.warned = True",
    "message in a condition": "if logger.isEnabledFor(logging.DEBUG):\n    logger.debug('x %s', x)",
    "message result used": "self.said = logger.warning('a')",
    "message in an expression": "logger.warning('a') or print('b')",
    "message as a default": "x = x + (0 if logger.warning('a') is None else 1)",
    "redirected": "with contextlib.redirect_stdout(None):\n    print('a')",
    "replaced print": "print = self.note\nprint('a')",
    "pprint": "import pprint\npprint.pprint({'a': 1})",
    "sys.stdout.write": "import sys\nsys.stdout.write('a')",
    "handler called": "logger.handle(logging.makeLogRecord({'msg': 'a'}))",
    "traceback": "import traceback\ntraceback.print_stack(limit=0)",
    "breakpoint-like": "import sys\nself.said = sys.exc_info()[0] is None",
    "in a comprehension": "[print(i) for i in range(2)]",
    "in a lambda": "f = lambda t: print('l')\nf(x)",
    "in a loop over rows": "for row in x:\n    print(row.sum())",
    "in try": "try:\n    print(x.view(7))\nexcept RuntimeError:\n    x = x * 2.0",
    "argument raises": "try:\n    print(self.missing)\nexcept AttributeError:\n    x = x * 2.0",
    "argument of item": "print(x.sum().item())",
    "argument of numpy": "print(x.detach().numpy())",
    "argument of id": "print(type(x).__name__)",
    "once per location": "warn_once('a')",
    "lru cached helper": "warn_cached('a')",
}.items():
    messages.add(
        name,
        f"{body}\nreturn x * 2.0",
        init="""
        self.calls = 0
        self.said = None
        self.warned = False
        self.table = Table()
        self.logger = logging.getLogger("other")
        self.mine = Mine()
        """,
        methods="""
        def note(self, text):
            self.calls += 1
            return text

        @property
        def counted(self):
            self.calls += 1
            return self.calls
        """,
        top="""
        import functools


        class Table:
            def __init__(self):
                self.reads = 0

            def get(self, name):
                self.reads += 1
                return self.reads

            def values(self):
                self.reads += 1
                return [self.reads]

            def __len__(self):
                self.reads += 1
                return self.reads

            def __str__(self):
                self.reads += 1
                return f"Table({self.reads})"

            def __getitem__(self, name):
                self.reads += 1
                return self.reads

            def __contains__(self, name):
                self.reads += 1
                return False


        class Mine:
            def __init__(self):
                self.said = []

            def warning(self, text):
                self.said.append(text)


        _SEEN = set()


        def warn_once(text):
            if text not in _SEEN:
                _SEEN.add(text)
                logger.warning(text)


        @functools.lru_cache(None)
        def warn_cached(text):
            logger.warning(text)
        """,
        varied=False,
        inputs=TWO,
        training=(False,),
    )
