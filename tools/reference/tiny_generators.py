"""Decoders that continue a text, each with its own positions, windows, norms, scales and output."""

import math

import torch
import transformers
from tiny import DECODER, DECODER_LAYER, POSITIONS, SIZES, WINDOW, Tiny, decoder_keys, head_size, keys, pairs, theta

HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": POSITIONS}
IDS = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
LLAMA_LAYER = DECODER_LAYER | {"post_attention_layernorm": "ffn_norm"}
OUTPUT = (r"lm_head\.weight", "output.weight")
TIED = (r"lm_head\.weight", None)


def _generator(name, architecture, model, layer=LLAMA_LAYER, tokenizer="gpt2", more=(), **fields):
    config = model.config
    return Tiny(
        name=f"generate-{name}",
        architecture=architecture,
        model=model,
        tokenizer=tokenizer,
        keys=decoder_keys(config, **dict(more)),
        tensors=[
            *DECODER,
            *pairs(r"model\.layers\.(\d+)\.", layer),
            TIED if config.tie_word_embeddings else OUTPUT,
            *fields.pop("tensors", []),
        ],
        generates=True,
        **fields,
    )


def _permuted(size):
    """Makes the change of architectures that turn pairs of values side by side; the checkpoint's are half a head
    apart."""
    return {r".*attn_[qk]\.weight": lambda w: w.unflatten(0, (-1, 2, size // 2)).swapaxes(1, 2).reshape(w.shape)}


def _of_llama(name, architecture, model, more=(), **fields):
    size = head_size(model.config)
    more = {"rope.dimension_count": size} | dict(more)
    return _generator(name, architecture, model, more=more, change=_permuted(size), **fields)


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
    return _of_llama("llama3", "llama", model, extra={"rope_freqs.weight": _llama3_factors(rope, 16)})


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
    return _of_llama("llama-linear", "llama", transformers.LlamaForCausalLM(config), more, tokenizer="llama")


def mistral_window():
    """Mistral 7B v0.1: every layer sees a window. Converters write nothing of it for this architecture."""
    config = transformers.MistralConfig(**SIZES, **HEADS, **IDS, sliding_window=WINDOW)
    return _of_llama("mistral-window", "llama", transformers.MistralForCausalLM(config), tokenizer="llama")


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
    return _of_llama("mixtral", "llama", model, more, tokenizer="llama", tensors=EXPERTS)


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
    return _generator("qwen2", "qwen2", transformers.Qwen2ForCausalLM(config))


def qwen2_yarn():
    """Qwen2.5 with its positions stretched by YaRN."""
    rope = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 256}
    config = transformers.Qwen2Config(**SIZES, **HEADS, **IDS, rope_parameters=rope)
    more = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 256}
    return _generator("qwen2-yarn", "qwen2", transformers.Qwen2ForCausalLM(config), more=more)


def qwen3():
    """Qwen3: norms on queries and keys, heads wider than the model divided among them."""
    config = transformers.Qwen3Config(**SIZES, **HEADS, **IDS, head_dim=16)
    return _generator("qwen3", "qwen3", transformers.Qwen3ForCausalLM(config))


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
    return _generator("qwen3moe", "qwen3moe", model, more=more, tensors=EXPERTS)


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
    tiny = _generator(
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
    tiny = _generator(
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
    return _generator("gemma3", "gemma3", model, GEMMA_LAYER, "llama", more, change=GEMMA_NORMS)


PHI3_LAYER = LLAMA_LAYER | {"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}


def _phi3(name, window=None, more=(), **config):
    config = transformers.Phi3Config(**SIZES, **HEADS, **IDS, sliding_window=window, **config)
    more = {"rope.dimension_count": head_size(config), "attention.sliding_window": window or 0} | dict(more)
    more.setdefault("rope.scaling.original_context_length", config.max_position_embeddings)
    return _generator(name, "phi3", transformers.Phi3ForCausalLM(config), PHI3_LAYER, "llama", more)


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
    return _generator("olmo2", "olmo2", transformers.Olmo2ForCausalLM(config), OLMO_LAYER)


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
    return _generator("olmo3", "olmo2", transformers.Olmo3ForCausalLM(config), OLMO_LAYER, more=more)


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
    return _of_llama("granite", "granite", transformers.GraniteForCausalLM(config), more, scales=scales)


def smollm3():
    """SmolLM3: every fourth layer has no positions."""
    config = transformers.SmolLM3Config(
        **SIZES | {"num_hidden_layers": 4}, **HEADS, **IDS, tie_word_embeddings=True, use_sliding_window=False
    )
    return _of_llama("smollm3", "smollm3", transformers.SmolLM3ForCausalLM(config))


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


def gpt2():
    """GPT-2: a table of positions, weights that stand the other way round, the GELU's tanh form."""
    layers = SIZES["num_hidden_layers"]
    config = transformers.GPT2Config(
        vocab_size=SIZES["vocab_size"], n_embd=32, n_layer=layers, n_head=2, n_positions=128, **IDS
    )
    names = {
        "attn.c_attn": "attn_qkv",
        "attn.c_proj": "attn_output",
        "ln_1": "attn_norm",
        "ln_2": "ffn_norm",
        "mlp.c_fc": "ffn_up",
        "mlp.c_proj": "ffn_down",
    }
    return Tiny(
        name="generate-gpt2",
        architecture="gpt2",
        model=transformers.GPT2LMHeadModel(config),
        tokenizer="gpt2",
        keys={
            "block_count": layers,
            "context_length": 128,
            "embedding_length": 32,
            "feed_forward_length": 128,
            "attention.head_count": 2,
            "attention.layer_norm_epsilon": config.layer_norm_epsilon,
        },
        tensors=[
            (r"transformer\.wte\.weight", "token_embd.weight"),
            (r"transformer\.wpe\.weight", "position_embd.weight"),
            (r"transformer\.ln_f(\.weight|\.bias)", r"output_norm\1"),
            *pairs(r"transformer\.h\.(\d+)\.", names),
            TIED,
        ],
        change={r"blk.*(attn_qkv|attn_output|ffn_up|ffn_down)\.weight": lambda w: w.T},
        scales={r".*\.(c_attn|c_fc|c_proj)\.weight": 2.0},  # or it repeats one token
        generates=True,
    )


def _with_biases(name, model, epsilon, layer, tensors, more):
    config = model.config
    return Tiny(
        name=f"generate-{name}",
        architecture=name,
        model=model,
        tokenizer="gpt2",
        keys=keys(config, **{"attention.layer_norm_epsilon": epsilon} | dict(more)),
        tensors=[*DECODER, *pairs(r"model\.layers\.(\d+)\.", layer), *tensors],
        scales={r".*\.(v_proj|o_proj|dense|fc1|fc2|c_fc|c_proj)\.weight": 2.0},  # or it repeats one token
        generates=True,
    )


def phi2():
    """Phi-2: half of each head is turned, attention and feed-forward side by side, a bias on the logits."""
    config = transformers.PhiConfig(**SIZES, **HEADS | {"num_key_value_heads": 4}, **IDS)
    layer = DECODER_LAYER | {"self_attn.dense": "attn_output", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"}
    tensors = [
        (r"model\.final_layernorm(\.weight|\.bias)", r"output_norm\1"),
        (r"lm_head(\.weight|\.bias)", r"output\1"),
    ]
    more = {"attention.head_count_kv": config.num_key_value_heads, "rope.dimension_count": head_size(config) // 2}
    return _with_biases("phi2", transformers.PhiForCausalLM(config), config.layer_norm_eps, layer, tensors, more)


def starcoder2():
    """StarCoder 2 within its window, of which converters write nothing."""
    config = transformers.Starcoder2Config(**SIZES, **HEADS, **IDS, sliding_window=None, tie_word_embeddings=True)
    layer = LLAMA_LAYER | {"mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    tensors = [(r"model\.norm\.bias", "output_norm.bias"), TIED]
    more = {"attention.head_count_kv": config.num_key_value_heads, "rope.freq_base": theta(config)}
    model = transformers.Starcoder2ForCausalLM(config)
    return _with_biases("starcoder2", model, config.norm_epsilon, layer, tensors, more)


def gptneox():
    """Pythia: a quarter of each head is turned, the exact GELU."""
    config = transformers.GPTNeoXConfig(
        **SIZES, num_attention_heads=2, max_position_embeddings=POSITIONS, **IDS, hidden_act="gelu"
    )
    names = {
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "attention.query_key_value": "attn_qkv",
        "attention.dense": "attn_output",
        "mlp.dense_h_to_4h": "ffn_up",
        "mlp.dense_4h_to_h": "ffn_down",
    }
    return Tiny(
        name="generate-gptneox",
        architecture="gptneox",
        model=transformers.GPTNeoXForCausalLM(config),
        tokenizer="gpt2",
        keys=keys(
            config,
            **{
                "attention.layer_norm_epsilon": config.layer_norm_eps,
                "rope.dimension_count": head_size(config) // 4,
                "use_parallel_residual": True,
            },
        ),
        tensors=[
            (r"gpt_neox\.embed_in\.weight", "token_embd.weight"),
            (r"gpt_neox\.final_layer_norm(\.weight|\.bias)", r"output_norm\1"),
            *pairs(r"gpt_neox\.layers\.(\d+)\.", names),
            OUTPUT,
        ],
        # A head's queries, keys and values stand together; llama.cpp has all queries first.
        change={r".*attn_qkv\.(weight|bias)": lambda w: w.unflatten(0, (2, 3, -1)).swapaxes(0, 1).reshape(w.shape)},
        generates=True,
    )


def falcon():
    """Falcon 7B: one key head for all queries, attention and feed-forward side by side, the exact GELU."""
    config = transformers.FalconConfig(
        vocab_size=SIZES["vocab_size"], hidden_size=32, num_hidden_layers=2, num_attention_heads=2, bias=False, **IDS
    )
    names = {
        "input_layernorm": "attn_norm",
        "self_attention.query_key_value": "attn_qkv",
        "self_attention.dense": "attn_output",
        "mlp.dense_h_to_4h": "ffn_up",
        "mlp.dense_4h_to_h": "ffn_down",
    }
    return Tiny(
        name="generate-falcon",
        architecture="falcon",
        model=transformers.FalconForCausalLM(config),
        tokenizer="gpt2",
        keys={
            "context_length": 2048,
            "tensor_data_layout": "jploski",
            "embedding_length": 32,
            "feed_forward_length": 128,
            "block_count": 2,
            "attention.head_count": 2,
            "attention.head_count_kv": 1,
            "attention.layer_norm_epsilon": config.layer_norm_epsilon,
        },
        tensors=[
            (r"transformer\.word_embeddings\.weight", "token_embd.weight"),
            (r"transformer\.ln_f(\.weight|\.bias)", r"output_norm\1"),
            *pairs(r"transformer\.h\.(\d+)\.", names),
            TIED,
        ],
        scales={r".*(query_key_value|dense|dense_h_to_4h|dense_4h_to_h)\.weight": 2.0},  # or it repeats one token
        generates=True,
    )


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
    return _of_llama("mistral3", "mistral3", transformers.Ministral3ForCausalLM(config), more)


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
    return _generator("gpt-oss", "gpt-oss", model, layer, more=more, tensors=[sinks], state=_gpt_oss_state)


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


GENERATORS = (
    llama3,
    llama_linear,
    mistral_window,
    mixtral,
    qwen2,
    qwen2_yarn,
    qwen3,
    qwen3moe,
    gemma,
    gemma2,
    gemma3,
    phi3_window,
    phi3_longrope,
    olmo2,
    olmo3,
    granite,
    smollm3,
    cohere2,
    gpt2,
    phi2,
    starcoder2,
    gptneox,
    falcon,
    mistral3,
    gpt_oss,
)
