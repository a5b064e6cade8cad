"""Encoders that transformers does not have, written from their descriptions.

All take ids [rows, tokens] of equal length. They have the members of their checkpoints and the configuration and
output of transformers' models, as far as architectures.py uses them.
"""

import dataclasses

import torch
from torch import nn
from torch.nn import functional


@dataclasses.dataclass
class Config:
    """Sizes, by transformers' names."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    hidden_act: str
    eps: float = 1e-12  # of the norms

    @property
    def head_size(self):
        return self.hidden_size // self.num_attention_heads


@dataclasses.dataclass
class Output:
    """What an encoder returns."""

    last_hidden_state: torch.Tensor  # [rows, tokens, hidden]


def attend(query, key, value, bias=0.0):
    """Mixes [rows, tokens, heads, size] by softmax(query key / sqrt(size) + bias), to [rows, tokens, heads * size]."""
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    weights = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5 + bias
    return (weights.softmax(-1) @ value).transpose(1, 2).flatten(2)


def rotate(x, base, pairs_adjacent):
    """Turns pairs of values of [rows, tokens, heads, size] by their positions (Su et al., "RoFormer", 2021). Pairs are
    values that stand side by side, or those of the two halves."""
    tokens, size = x.shape[1], x.shape[3]
    angle = torch.arange(tokens)[:, None] * base ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
    cos, sin = angle.cos()[:, None].to(x), angle.sin()[:, None].to(x)
    first, second = (x[..., 0::2], x[..., 1::2]) if pairs_adjacent else x.chunk(2, -1)
    turned = first * cos - second * sin, first * sin + second * cos
    return torch.stack(turned, -1).flatten(3) if pairs_adjacent else torch.cat(turned, -1)


class JinaBertV2(nn.Module):
    """jina-embeddings-v2: BERT with ALiBi in place of positions, and a gated feed-forward layer.

    Source: Günther et al., "Jina Embeddings 2: 8192-Token General-Purpose Text Embeddings for Long Documents" (2023),
    section 4; ALiBi: Press et al. (2022), here to both sides; GEGLU: Shazeer (2020). With `code` it is
    jina-embeddings-v2-base-code, which has norms on queries and keys and a second one behind attention; gate and value
    are then two tensors, as converters to GGUF once wrote them.
    """

    def __init__(self, config, code):
        super().__init__()
        self.config = config
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(config.vocab_size, config.hidden_size),
                "token_type_embeddings": nn.Embedding(2, config.hidden_size),
                "LayerNorm": nn.LayerNorm(config.hidden_size, config.eps),
            }
        )
        layers = nn.ModuleList(_JinaBertV2Layer(config, code) for _ in range(config.num_hidden_layers))
        self.encoder = nn.ModuleDict({"layer": layers})

    def forward(self, input_ids):
        words, types, norm = (self.embeddings[n] for n in ("word_embeddings", "token_type_embeddings", "LayerNorm"))
        states = norm(words(input_ids) + types.weight[0])
        position = torch.arange(input_ids.shape[1], dtype=states.dtype)
        slopes = torch.tensor(alibi_slopes(self.config.num_attention_heads), dtype=states.dtype)
        bias = -slopes[:, None, None] * (position - position[:, None]).abs()
        for layer in self.encoder["layer"]:
            states = layer(states, bias)
        return Output(states)


def alibi_slopes(heads):
    """Returns ALiBi's slopes: a geometric series for a power of two; for others the series of the next lower power,
    and every other one of the next higher."""
    power = 1 << (heads.bit_length() - 1)
    first = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    return first + [2 ** (-8 * (i + 1) / (2 * power)) for i in range(0, 2 * (heads - power), 2)]


class _JinaBertV2Layer(nn.Module):
    def __init__(self, config, code):
        super().__init__()
        width, wide, eps = config.hidden_size, config.intermediate_size, config.eps
        self.heads = (config.num_attention_heads, config.head_size)
        self.attention = nn.ModuleDict(
            {
                "self": nn.ModuleDict({name: nn.Linear(width, width) for name in ("query", "key", "value")}),
                "output": nn.ModuleDict({"dense": nn.Linear(width, width), "LayerNorm": nn.LayerNorm(width, eps)}),
            }
        )
        gates = {"gated_layers_w": wide, "gated_layers_v": wide} if code else {"gated_layers": 2 * wide}
        self.gates = tuple(gates)
        self.mlp = nn.ModuleDict({name: nn.Linear(width, size, bias=False) for name, size in gates.items()})
        self.code = code
        if code:
            self.attention["self"].update({f"layer_norm_{x}": nn.LayerNorm(width, eps) for x in "qk"})
            self.layer_norm_1 = nn.LayerNorm(width, eps)
        self.mlp.update({"wo": nn.Linear(wide, width), "layernorm": nn.LayerNorm(width, eps)})

    def forward(self, states, bias):
        inner, output = self.attention["self"], self.attention["output"]
        query, key, value = (inner[name](states) for name in ("query", "key", "value"))
        if self.code:
            query, key = inner["layer_norm_q"](query), inner["layer_norm_k"](key)
        mixed = output["dense"](attend(*(x.unflatten(-1, self.heads) for x in (query, key, value)), bias))
        mixed = output["LayerNorm"](mixed + states)
        states = self.layer_norm_1(mixed + states) if self.code else mixed
        gate, up = torch.cat([self.mlp[name](states) for name in self.gates], -1).chunk(2, -1)
        return self.mlp["layernorm"](self.mlp["wo"](functional.gelu(gate) * up) + states)


class NomicBertMoE(nn.Module):
    """nomic-embed-text-v2-moe: BERT with rotary positions, every other feed-forward layer a mixture of experts.

    Source: Nussbaum and Duderstadt, "Training Sparse Mixture of Experts Text Embedding Models" (2025), section 3, and
    the checkpoint's tensors: two experts of a softmax over all, weighted as they come, and one bias behind their sum.
    """

    def __init__(self, config, experts, used):
        super().__init__()
        self.config = config
        self.experts, self.used = experts, used
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(config.vocab_size, config.hidden_size),
                "token_type_embeddings": nn.Embedding(1, config.hidden_size),
            }
        )
        self.emb_ln = nn.LayerNorm(config.hidden_size, config.eps)
        layers = nn.ModuleList(
            _NomicBertLayer(config, experts if i % 2 else 0, used) for i in range(config.num_hidden_layers)
        )
        self.encoder = nn.ModuleDict({"layers": layers})

    def forward(self, input_ids):
        words, types = self.embeddings["word_embeddings"], self.embeddings["token_type_embeddings"]
        states = self.emb_ln(words(input_ids) + types.weight[0])
        for layer in self.encoder["layers"]:
            states = layer(states)
        return Output(states)


class _NomicBertLayer(nn.Module):
    def __init__(self, config, experts, used):
        super().__init__()
        width, wide, eps = config.hidden_size, config.intermediate_size, config.eps
        self.heads = (config.num_attention_heads, config.head_size)
        self.attn = nn.ModuleDict({"Wqkv": nn.Linear(width, 3 * width), "out_proj": nn.Linear(width, width)})
        self.norm1, self.norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.mlp = (
            _Experts(width, wide, experts, used)
            if experts
            else nn.ModuleDict({"fc1": nn.Linear(width, wide), "fc2": nn.Linear(wide, width)})
        )

    def forward(self, states):
        query, key, value = (x.unflatten(-1, self.heads) for x in self.attn["Wqkv"](states).chunk(3, -1))
        query, key = (rotate(x, 10000.0, pairs_adjacent=False) for x in (query, key))
        states = self.norm1(self.attn["out_proj"](attend(query, key, value)) + states)
        mixed = (
            self.mlp(states)
            if isinstance(self.mlp, _Experts)
            else self.mlp["fc2"](functional.gelu(self.mlp["fc1"](states)))
        )
        return self.norm2(mixed + states)


class _Experts(nn.Module):
    def __init__(self, width, wide, experts, used):
        super().__init__()
        self.used = used
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.empty(experts, wide, width))
        self.down = nn.Parameter(torch.empty(experts, width, wide))
        self.bias = nn.Parameter(torch.empty(width))

    def forward(self, states):
        shares, chosen = self.router(states).softmax(-1).topk(self.used)
        weights = torch.zeros(*states.shape[:2], len(self.up), dtype=states.dtype).scatter(-1, chosen, shares)
        each = torch.einsum("rtw,ehw->rteh", states, self.up)
        return torch.einsum("rteh,ewh,rte->rtw", functional.gelu(each), self.down, weights) + self.bias


class NeoBERT(nn.Module):
    """NeoBERT: a Llama that sees the whole row. Each head's query, key and value stand together in one projection.

    Source: Le Breton et al., "NeoBERT: A Next-Generation BERT" (2025), section 3, and the checkpoint's tensors.
    """

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.transformer_encoder = nn.ModuleList(_NeoBERTLayer(config) for _ in range(config.num_hidden_layers))
        self.layer_norm = nn.RMSNorm(config.hidden_size, config.eps)

    def forward(self, input_ids):
        states = self.embeddings(input_ids)
        for layer in self.transformer_encoder:
            states = layer(states)
        return Output(self.layer_norm(states))


class _NeoBERTLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, wide = config.hidden_size, config.intermediate_size
        self.heads = (config.num_attention_heads, 3 * config.head_size)
        self.attention_norm, self.ffn_norm = nn.RMSNorm(width, config.eps), nn.RMSNorm(width, config.eps)
        self.qkv, self.wo = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.w12, self.w3 = nn.Linear(width, 2 * wide, bias=False), nn.Linear(wide, width, bias=False)

    def forward(self, states):
        query, key, value = self.qkv(self.attention_norm(states)).unflatten(-1, self.heads).chunk(3, -1)
        query, key = (rotate(x, 10000.0, pairs_adjacent=True) for x in (query, key))
        states = states + self.wo(attend(query, key, value))
        gate, up = self.w12(self.ffn_norm(states)).chunk(2, -1)
        return states + self.w3(functional.silu(gate) * up)
