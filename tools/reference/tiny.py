"""What the tiny models of architectures.py have in common: how weights are drawn, and what GGUF calls things.

The shapes are small and uneven on purpose: heads wider than the model divided among them, one key head for several
queries, windows that the longer rows overrun.
"""

import dataclasses
import re
from collections.abc import Callable

import torch
from qwen3_reranker import Tokens
from transformers.pytorch_utils import Conv1D

VOCABULARY = 96
POSITIONS = 1024
WINDOW = 16  # of local attention: half of it to each side


@dataclasses.dataclass
class Tiny:
    """A model with weights, and how it is written as GGUF.

    `tensors` are pairs of a pattern over torch's names and the GGUF name, in which `\\1` is the layer; what matches
    none is an error, so nothing of a model is left out unseen. A GGUF name of None is a tensor that llama.cpp does not
    read; several names share the last dimension but one. `change` are functions of a weight, by patterns over GGUF
    names. `keys` are the metadata under the architecture's name.
    """

    name: str  # of the files
    architecture: str  # llama.cpp's
    model: torch.nn.Module
    tokenizer: str
    keys: dict
    tensors: list
    poolings: tuple = ("mean", "cls", "last")  # the first is the model's own
    change: dict[str, Callable] = dataclasses.field(default_factory=dict)
    tokenizer_keys: dict = dataclasses.field(default_factory=dict)
    head: Callable | None = None  # of the pooled vector, an embedder's own
    ranks: bool = False
    generates: bool = False
    scales: dict[str, float] = dataclasses.field(default_factory=dict)  # of weights drawn, by torch's names
    state: Callable = torch.nn.Module.state_dict  # what is written, where converters arrange it anew
    extra: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)  # what converters compute, by GGUF name
    tokens: Tokens | None = None  # of a reranker by template

    def gguf_tensors(self):
        """Yields (name, float32 array) of every tensor that the file holds."""
        for name, weight in self.state(self.model).items():
            targets = self._targets(name)
            parts = weight.chunk(len(targets), -2) if len(targets) > 1 else [weight] * len(targets)
            for target, part in zip(targets, parts, strict=True):
                for pattern, change in self.change.items():
                    if re.fullmatch(pattern, target):
                        part = change(part)
                yield target, part.float().numpy()
        yield from ((name, weight.numpy()) for name, weight in self.extra.items())
        if self.tokens:
            rows = self.tokens.ids("yes") + self.tokens.ids("no")
            yield "cls.output.weight", self.model.lm_head.weight[rows].detach().numpy()

    def _targets(self, name):
        for pattern, target in self.tensors:
            if match := re.fullmatch(pattern, name):
                names = (target,) if isinstance(target, str) else target or ()
                return [match.expand(name) for name in names]
        raise ValueError(f"{self.name}: no GGUF name for {name}")


def drawn(model, seed, rounded=torch.bfloat16, shuffled=False, scales=()):
    """Returns the model with weights drawn from a seed, large enough that every part of it shows in the result.

    They are rounded to a type that float32 holds exactly, and which compresses to as much less. If shuffled, the
    matrices of every layer but the first are the first's with their rows in another order, and so is an output of its
    own the table of tokens: the layers differ, and take no place in a compressed file.
    """
    draw = torch.Generator().manual_seed(seed)
    # GPT-2's weights stand the other way round: what goes into them is their first dimension.
    turned = {id(module.weight) for module in model.modules() if isinstance(module, Conv1D)}
    parameters = dict(model.named_parameters())
    for name, weight in parameters.items():
        out, into = (-1, 0) if id(weight) in turned else (-2, -1)
        first = parameters.get(re.sub(r"\.\d+\.", ".0.", name, count=1))
        if name == "lm_head.weight":
            first = model.get_input_embeddings().weight
        if shuffled and weight.dim() > 1 and first is not None and first is not weight:
            order = torch.randperm(weight.shape[out], generator=draw)
            weight.data = first.data.index_select(out, order)
            continue
        values = torch.randn(weight.shape, generator=draw)
        if "embed" in name and weight.dim() > 1:
            values *= 0.3
        elif weight.dim() > 1:
            values *= 1.2 / weight.shape[into] ** 0.5
        elif name.endswith("bias"):
            values *= 0.2
        else:  # a norm
            values = 1 + 0.2 * values
        for pattern, scale in dict(scales).items():
            if re.fullmatch(pattern, name):
                values *= scale
        weight.data = values.to(rounded).float()
    return model.eval()


def pairs(prefix, names):
    """Makes the pairs of one layer's modules. The prefix has a group for the layer's number."""
    return [
        (prefix + re.escape(module) + r"(\.weight|\.bias)", rf"blk.\1.{target}\2") for module, target in names.items()
    ]


BERT_LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
BERT_EMBEDDINGS = [
    (r"(?:roberta\.)?embeddings\.word_embeddings\.weight", "token_embd.weight"),
    (r"(?:roberta\.)?embeddings\.token_type_embeddings\.weight", "token_types.weight"),
    (r"(?:roberta\.)?embeddings\.position_embeddings\.weight", "position_embd.weight"),
    (r"(?:roberta\.)?embeddings\.LayerNorm(\.weight|\.bias)", r"token_embd_norm\1"),
]

DECODER_LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
}
DECODER = [
    (r"(?:model\.)?embed_tokens\.weight", "token_embd.weight"),
    (r"(?:model\.)?norm\.weight", "output_norm.weight"),
]

# What every file says of its shape. Each architecture adds what it needs.
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}


def keys(config, **more):
    """Returns what every file says of its shape, under the architecture's name."""
    common = {
        "context_length": POSITIONS,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "block_count": config.num_hidden_layers,
        "attention.head_count": config.num_attention_heads,
    }
    return common | more


def decoder_keys(config, **more):
    """Returns what files of Llama's kind say as well."""
    return keys(
        config,
        **{
            "attention.head_count_kv": config.num_key_value_heads,
            "attention.key_length": head_size(config),
            "attention.value_length": head_size(config),
            "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
            "rope.freq_base": theta(config),
        }
        | more,
    )


def head_size(config):
    """Returns the width of a head, which a configuration need not state."""
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def theta(config, kind="full_attention"):
    """Returns the base of the rotary positions, of one kind of layers where they differ."""
    parameters = config.rope_parameters
    return float(parameters.get(kind, parameters)["rope_theta"])
