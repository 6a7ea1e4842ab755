"""Several sources of tokens as one data set for training: weights per source, one seeded order, exact resuming.

    mixture.py   what users write: sources and weights; opens the sources
    windows.py   the windows of all sources, by one index, as batches
    blending.py  which window each step of an epoch gets: a function of the seed, the epoch and the step

Only ../torch_data.py needs PyTorch.
"""

from .blending import MixtureSampler as MixtureSampler
from .mixture import Mixture as Mixture
from .mixture import open_sources as open_sources
from .windows import Windows as Windows
