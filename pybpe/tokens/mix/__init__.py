"""Mixes sources by a recipe, and shuffles all documents: what enters a batch, and in what order.

recipe.py      the recipe, a TOML file           amounts.py    how many tokens a phase asks of a source
sources.py     folders of tokens, and text       drawing.py    which documents a phase gets, at random
shuffling.py   the order, in buckets on disk     mixing.py     the functions that users call
"""

from .mixing import MixPlan as MixPlan
from .mixing import SourcePlan as SourcePlan
from .mixing import mix as mix
from .mixing import plan_mix as plan_mix
