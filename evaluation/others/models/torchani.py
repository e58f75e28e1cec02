"""Neural network potentials for molecules."""

import torch

SOURCE = "pip:torchani==2.9.0"
IMPORTS = "torchani"


def _molecule():
    species = torch.tensor([[6, 1, 1, 1, 1], [7, 1, 1, 1, -1]])
    return species, torch.randn(2, 5, 3) * 1.5


def _symbols():
    return ("H", "C", "N")


def aev():
    from torchani.aev import AEVComputer

    species, coordinates = _molecule()
    return AEVComputer.like_2x(num_species=3), (species.clamp(max=2), coordinates), {"train": False}


def simple_ani():
    from torchani.arch import simple_ani

    return simple_ani(_symbols(), lot="wb97x-631gd", ensemble_size=1), (_molecule(),), {"train": False}


def ensemble():
    from torchani.arch import simple_ani

    return (
        simple_ani(_symbols(), lot="wb97x-631gd", ensemble_size=2, repulsion=True),
        (_molecule(),),
        {"train": False},
    )


def charges():
    from torchani.arch import simple_aniq

    return simple_aniq(_symbols(), lot="wb97x-631gd", ensemble_size=1), (_molecule(),), {"train": False}


def species_converter():
    from torchani.nn import SpeciesConverter

    return SpeciesConverter(_symbols()), (_molecule(),), {"train": False}
