"""Decoders with biases, and with blocks in parallel: GPT-2, Phi-2, StarCoder 2, Pythia, Falcon."""

import transformers
from tiny import DECODER, DECODER_LAYER, POSITIONS, SIZES, Tiny, head_size, keys, pairs, theta
from tiny_generator import HEADS, IDS, LLAMA_LAYER, OUTPUT, TIED


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
