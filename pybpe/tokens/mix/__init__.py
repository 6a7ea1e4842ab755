"""Mixes sources by a recipe, and shuffles all documents: decides what enters a batch, and in which order.

mixing.py   the functions that users call, and the sources    drawing.py     which documents are used, at random
recipe.py   the recipe, a TOML file, and its amounts          shuffling.py   their order, in buckets on disk
"""

from .mixing import MixPlan as MixPlan
from .mixing import SourcePlan as SourcePlan
from .mixing import mix as mix
from .mixing import plan_mix as plan_mix
