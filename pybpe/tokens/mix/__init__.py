"""Mixes sources by a recipe, and shuffles all documents: what enters a batch, and in what order.

recipe.py      the recipe, a TOML file           amounts.py    how many tokens each phase asks of each source
sources.py     folders of tokens, and texts      documents.py  where documents are in the tokens
drawing.py     which documents each phase gets   keys.py       the random numbers that decide this, and the order
shuffling.py   the order, in buckets on disk     plan.py       what a recipe asks, in seconds
mixing.py      the function that users call
"""

from .mixing import mix as mix
from .plan import MixPlan as MixPlan
from .plan import SourcePlan as SourcePlan
from .plan import plan_mix as plan_mix
