"""Decoders with windows, further norms or fused weights: Gemma, Phi-3, OLMo, Command."""

import math

import torch
import transformers
from tiny import DECODER, DECODER_LAYER, POSITIONS, SIZES, WINDOW, Tiny, head_size, keys, pairs, theta
from tiny_generator import HEADS, IDS, LLAMA_LAYER, TIED, generator

GEMMA_LAYER = DECODER_LAYER | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
GEMMA_NORMS = {r".*norm\.weight": lambda w: w + 1}  # Gemma's norms multiply by 1 + weight
GEMMA_HEADS = HEADS | {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}


def gemma():
    """Gemma 1."""
    config = transformers.GemmaConfig(**SIZES, **GEMMA_HEADS, **IDS)
    model = transformers.GemmaForCausalLM(config)
    tiny = generator(
        "gemma",
        "gemma",
        model,
        tokenizer="llama",
        change=GEMMA_NORMS,
        scales={r".*embed_tokens.*": 0.15},  # or it repeats what it read
    )
    del tiny.keys["rope.freq_base"]  # converters do not write it
    return tiny


def gemma2():
    """Gemma 2: every other layer sees a window; scores and logits are capped, here low enough to show."""
    config = transformers.Gemma2Config(
        **SIZES | {"num_hidden_layers": 4},
        **GEMMA_HEADS,
        **IDS,
        query_pre_attn_scalar=16,
        sliding_window=WINDOW,
        attn_logit_softcapping=1.5,
        final_logit_softcapping=8.0,
    )
    more = {
        "attention.sliding_window": WINDOW,
        "attn_logit_softcapping": 1.5,
        "final_logit_softcapping": 8.0,
    }
    tiny = generator(
        "gemma2",
        "gemma2",
        transformers.Gemma2ForCausalLM(config),
        GEMMA_LAYER,
        "llama",
        more,
        change=GEMMA_NORMS,
        scales={r".*embed_tokens.*": 0.15},  # or it repeats what it read
    )
    del tiny.keys["rope.freq_base"]  # converters do not write it
    return tiny


def gemma3():
    """Gemma 3: the sixth layer sees the whole row, by positions of another base that are divided, as 4B's and more."""
    rope = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    config = transformers.Gemma3TextConfig(
        **SIZES | {"num_hidden_layers": 7},
        **GEMMA_HEADS,
        **IDS,
        query_pre_attn_scalar=16,
        sliding_window=WINDOW,
        rope_parameters=rope,
    )
    more = {
        "attention.sliding_window": WINDOW,
        "rope.freq_base_swa": theta(config, "sliding_attention"),
        "rope.scaling.type": "linear",
        "rope.scaling.factor": 8.0,
    }
    model = transformers.Gemma3ForCausalLM(config)
    return generator("gemma3", "gemma3", model, GEMMA_LAYER, "llama", more, change=GEMMA_NORMS)


PHI3_LAYER = LLAMA_LAYER | {"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}


def _phi3(name, window=None, more=(), **config):
    config = transformers.Phi3Config(**SIZES, **HEADS, **IDS, sliding_window=window, **config)
    more = {"rope.dimension_count": head_size(config), "attention.sliding_window": window or 0} | dict(more)
    more.setdefault("rope.scaling.original_context_length", config.max_position_embeddings)
    return generator(name, "phi3", transformers.Phi3ForCausalLM(config), PHI3_LAYER, "llama", more)


def phi3_window():
    """Phi-3-mini-4k: every layer sees a window, which the file tells and llama.cpp leaves out."""
    return _phi3("phi3-window", window=32)


def phi3_longrope():
    """Phi-3-mini-128k, Phi-3.5, Phi-4-mini: positions of rows that are longer than the original context are scaled
    by other factors."""
    size = SIZES["hidden_size"] // HEADS["num_attention_heads"]
    short = [1.0 + 0.1 * i for i in range(size // 2)]
    long = [1.5 + 2.0 * i for i in range(size // 2)]
    original = 256
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": short,
        "long_factor": long,
        "original_max_position_embeddings": original,
    }
    more = {
        "rope.scaling.original_context_length": original,
        "rope.scaling.attn_factor": math.sqrt(1 + math.log(POSITIONS / original) / math.log(original)),
    }
    tiny = _phi3("phi3-longrope", more=more, rope_parameters=rope, original_max_position_embeddings=original)
    tiny.extra = {
        "rope_factors_long.weight": torch.tensor(long, dtype=torch.float32),
        "rope_factors_short.weight": torch.tensor(short, dtype=torch.float32),
    }
    return tiny


OLMO_LAYER = DECODER_LAYER | {
    "post_attention_layernorm": "post_attention_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def olmo2():
    """OLMo 2: norms behind attention and feed-forward, and on all queries and keys together."""
    config = transformers.Olmo2Config(**SIZES, **HEADS, **IDS)
    return generator("olmo2", "olmo2", transformers.Olmo2ForCausalLM(config), OLMO_LAYER)


def olmo3():
    """OLMo 3: the same with windows, whose layers keep the plain positions where the others' are stretched by YaRN."""
    rope = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 256,
            "attention_factor": 1.1386294361119891,
        },
    }
    config = transformers.Olmo3Config(
        **SIZES | {"num_hidden_layers": 4}, **HEADS, **IDS, sliding_window=WINDOW, rope_parameters=rope
    )
    more = {
        "attention.sliding_window": WINDOW,
        "attention.sliding_window_pattern": [kind == "sliding_attention" for kind in config.layer_types],
        "rope.freq_base_swa": 10000.0,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 256,
        "rope.scaling.yarn_attn_factor": 1.1386294361119891,
    }
    return generator("olmo3", "olmo2", transformers.Olmo3ForCausalLM(config), OLMO_LAYER, more=more)


def cohere2():
    """Command R7B: attention and feed-forward side by side; every fourth layer sees the whole row, without
    positions."""
    config = transformers.Cohere2Config(
        **SIZES | {"num_hidden_layers": 4}, **HEADS, **IDS, sliding_window=WINDOW, logit_scale=0.7
    )
    size = head_size(config)
    return Tiny(
        name="generate-cohere2",
        architecture="cohere2",
        model=transformers.Cohere2ForCausalLM(config),
        tokenizer="gpt2",
        keys=keys(
            config,
            **{
                "attention.head_count_kv": config.num_key_value_heads,
                "attention.layer_norm_epsilon": config.layer_norm_eps,
                "attention.sliding_window": WINDOW,
                "logit_scale": config.logit_scale,
                "rope.freq_base": theta(config),
                "rope.dimension_count": size,
                "rope.scaling.type": "none",
            },
        ),
        tensors=[*DECODER, *pairs(r"model\.layers\.(\d+)\.", DECODER_LAYER), TIED],
        generates=True,
    )
