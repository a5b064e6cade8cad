"""Tiny models of the architectures that llama.cpp embeds, ranks and generates with: weights from a seed, and what each
is called in a GGUF file. Names and metadata are those that llama.cpp's own converter writes.
"""

from tiny_decoders import DECODERS
from tiny_encoders import ENCODERS
from tiny_generators import GENERATORS
from tiny_own import OWN

ARCHITECTURES = ENCODERS + DECODERS + OWN + GENERATORS
