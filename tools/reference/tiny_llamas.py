"""Decoders of Llama's and Qwen's kind, with their scalings of positions and their experts."""

import math

import torch
import transformers
from tiny import DECODER_LAYER, SIZES, WINDOW, keys
from tiny_generator import HEADS, IDS, generator, of_llama


def llama3():
    """Llama 3: wavelengths over the original context are stretched. Its output is the table of its tokens, as 3.2's."""
    rope = {
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 128,
    }
    config = transformers.LlamaConfig(
        **SIZES, **HEADS, **IDS, head_dim=16, rope_parameters=rope, tie_word_embeddings=True
    )
    model = transformers.LlamaForCausalLM(config)
    return of_llama("llama3", "llama", model, extra={"rope_freqs.weight": _llama3_factors(rope, 16)})


def _llama3_factors(rope, size):
    """Returns what converters write: by how much each frequency is divided, float32 [size / 2]."""
    low = rope["original_max_position_embeddings"] / rope["low_freq_factor"]
    high = rope["original_max_position_embeddings"] / rope["high_freq_factor"]
    factors = []
    for i in range(0, size, 2):
        wave = 2 * math.pi * rope["rope_theta"] ** (i / size)
        smooth = (rope["original_max_position_embeddings"] / wave - rope["low_freq_factor"]) / (
            rope["high_freq_factor"] - rope["low_freq_factor"]
        )
        between = 1 / ((1 - smooth) / rope["factor"] + smooth)
        factors.append(1 if wave < high else rope["factor"] if wave > low else between)
    return torch.tensor(factors, dtype=torch.float32)


def llama_linear():
    """Llama 2 and its kin with positions that are divided by a factor."""
    rope = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
    config = transformers.LlamaConfig(**SIZES, **HEADS, **IDS, rope_parameters=rope)
    more = {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}
    return of_llama("llama-linear", "llama", transformers.LlamaForCausalLM(config), more, tokenizer="llama")


def mistral_window():
    """Mistral 7B v0.1: every layer sees a window. Converters write nothing of it for this architecture."""
    config = transformers.MistralConfig(**SIZES, **HEADS, **IDS, sliding_window=WINDOW)
    return of_llama("mistral-window", "llama", transformers.MistralForCausalLM(config), tokenizer="llama")


def mixtral():
    """Mixtral: Llama with experts."""
    config = transformers.MixtralConfig(
        **SIZES | {"intermediate_size": 16},
        **HEADS,
        **IDS,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=None,
    )
    model = transformers.MixtralForCausalLM(config)
    more = {"expert_count": 4, "expert_used_count": 2}
    return of_llama("mixtral", "llama", model, more, tokenizer="llama", tensors=EXPERTS)


EXPERTS = [
    (r"model\.layers\.(\d+)\.mlp\.gate\.weight", r"blk.\1.ffn_gate_inp.weight"),
    (
        r"model\.layers\.(\d+)\.mlp\.experts\.gate_up_proj",
        (r"blk.\1.ffn_gate_exps.weight", r"blk.\1.ffn_up_exps.weight"),
    ),
    (r"model\.layers\.(\d+)\.mlp\.experts\.down_proj", r"blk.\1.ffn_down_exps.weight"),
]


def qwen2():
    """Qwen2 and Qwen2.5: a bias on queries, keys and values; tied, as the small ones are."""
    config = transformers.Qwen2Config(**SIZES, **HEADS, **IDS, tie_word_embeddings=True)
    return generator("qwen2", "qwen2", transformers.Qwen2ForCausalLM(config))


def qwen2_yarn():
    """Qwen2.5 with its positions stretched by YaRN."""
    rope = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 256}
    config = transformers.Qwen2Config(**SIZES, **HEADS, **IDS, rope_parameters=rope)
    more = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 256}
    return generator("qwen2-yarn", "qwen2", transformers.Qwen2ForCausalLM(config), more=more)


def qwen3():
    """Qwen3: norms on queries and keys, heads wider than the model divided among them."""
    config = transformers.Qwen3Config(**SIZES, **HEADS, **IDS, head_dim=16)
    return generator("qwen3", "qwen3", transformers.Qwen3ForCausalLM(config))


def qwen3moe():
    """Qwen3-30B-A3B: experts, whose weights are made to sum to one."""
    config = transformers.Qwen3MoeConfig(
        **SIZES,
        **HEADS,
        **IDS,
        head_dim=16,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        norm_topk_prob=True,
    )
    more = {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 16}
    model = transformers.Qwen3MoeForCausalLM(config)
    return generator("qwen3moe", "qwen3moe", model, more=more, tensors=EXPERTS)


def granite():
    """Granite 3: Llama with four scales."""
    config = transformers.GraniteConfig(
        **SIZES,
        **HEADS,
        **IDS,
        tie_word_embeddings=True,
        attention_multiplier=0.2,
        embedding_multiplier=3.0,
        residual_multiplier=0.6,
        logits_scaling=0.2,
    )
    more = {"attention.scale": 0.2, "embedding_scale": 3.0, "residual_scale": 0.6, "logit_scale": 0.2}
    scales = {r".*embed_tokens.*": 0.1}  # or it repeats what it read
    return of_llama("granite", "granite", transformers.GraniteForCausalLM(config), more, scales=scales)


def smollm3():
    """SmolLM3: every fourth layer has no positions."""
    config = transformers.SmolLM3Config(
        **SIZES | {"num_hidden_layers": 4}, **HEADS, **IDS, tie_word_embeddings=True, use_sliding_window=False
    )
    return of_llama("smollm3", "smollm3", transformers.SmolLM3ForCausalLM(config))


def mistral3():
    """Ministral 3: YaRN, and queries that grow with their position behind the original context."""
    rope = {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 4.0,
        "original_max_position_embeddings": 256,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "llama_4_scaling_beta": 0.1,
    }
    config = transformers.Ministral3Config(**SIZES, **HEADS, **IDS, head_dim=16, rope_parameters=rope)
    more = {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 256,
        "rope.scaling.yarn_beta_fast": 32.0,
        "rope.scaling.yarn_beta_slow": 1.0,
        "rope.scaling.yarn_log_multiplier": 1.0,
        "attention.temperature_scale": 0.1,
    }
    return of_llama("mistral3", "mistral3", transformers.Ministral3ForCausalLM(config), more)


def gpt_oss():
    """gpt-oss: sinks, every other layer sees a window, experts with a bias and their own gate."""
    config = transformers.GptOssConfig(
        **SIZES | {"intermediate_size": 16},
        **HEADS,
        **IDS,
        head_dim=16,
        sliding_window=WINDOW,
        num_local_experts=4,
        num_experts_per_tok=2,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 150000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 256,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
        },
    )
    more = {
        "attention.sliding_window": WINDOW,
        "expert_count": 4,
        "expert_used_count": 2,
        "expert_feed_forward_length": 16,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 256,
        "rope.scaling.yarn_beta_fast": 32.0,
        "rope.scaling.yarn_beta_slow": 1.0,
    }
    layer = DECODER_LAYER | {
        "post_attention_layernorm": "post_attention_norm",
        "mlp.router": "ffn_gate_inp",
        "mlp.experts.gate": "ffn_gate_exps",
        "mlp.experts.up": "ffn_up_exps",
        "mlp.experts.down": "ffn_down_exps",
    }
    sinks = (r"model\.layers\.(\d+)\.self_attn\.sinks", r"blk.\1.attn_sinks.weight")
    model = transformers.GptOssForCausalLM(config)
    return generator("gpt-oss", "gpt-oss", model, layer, more=more, tensors=[sinks], state=_gpt_oss_state)


def _gpt_oss_state(model):
    """Takes the gate of the experts and their value apart, which alternate, and turns their weights."""
    state = {}
    for name, weight in model.state_dict().items():
        layer, experts, part = name.partition("mlp.experts.")
        if not experts:
            state[name] = weight
            continue
        kind = ".bias" if part.endswith("_bias") else ".weight"
        weight = weight if kind == ".bias" else weight.transpose(-1, -2)
        if part.startswith("down"):
            state[f"{layer}{experts}down{kind}"] = weight
            continue
        gate, up = (weight[:, 0::2], weight[:, 1::2])
        state |= {f"{layer}{experts}gate{kind}": gate, f"{layer}{experts}up{kind}": up}
    return state
