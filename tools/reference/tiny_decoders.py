"""Decoders that embed by a token, or rank by a template."""

import transformers
from qwen3_reranker import Tokens
from tiny import DECODER, DECODER_LAYER, POSITIONS, SIZES, Tiny, decoder_keys, head_size, pairs


def qwen3():
    """Qwen3-Embedding: a decoder, pooled by its last token. Its heads are wider than the model divided among them."""
    config = transformers.Qwen3Config(
        **SIZES, num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=POSITIONS
    )
    return _decoder("qwen3", transformers.Qwen3Model(config))


def qwen2():
    """gte-Qwen2: a decoder that was made to see the whole row, pooled by its last token."""
    config = transformers.Qwen2Config(
        **SIZES, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=POSITIONS, is_causal=False
    )
    return _decoder("qwen2", transformers.Qwen2Model(config), **{"attention.causal": False})


def llama():
    """e5-mistral and others of Llama's and Mistral's layout."""
    config = transformers.MistralConfig(
        **SIZES, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=POSITIONS, sliding_window=None
    )
    return _llama("llama", transformers.MistralModel(config))


def llama_embed():
    """llama-embed-nemotron: Llama that was made to see the whole row."""
    config = transformers.LlamaConfig(
        **SIZES, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=POSITIONS, is_causal=False
    )
    return _llama("llama-embed", transformers.LlamaModel(config))


def _llama(name, model):
    size = head_size(model.config)
    tiny = _decoder(name, model, **{"rope.dimension_count": size})
    # llama.cpp turns pairs of values that stand side by side; the checkpoint's are half a head apart.
    tiny.change[r".*attn_[qk]\.weight"] = lambda w: w.unflatten(0, (-1, 2, size // 2)).swapaxes(1, 2).reshape(w.shape)
    return tiny


def _decoder(name, model, **more):
    return Tiny(
        name=name,
        architecture=name,
        model=model,
        tokenizer="gpt2",
        keys=decoder_keys(model.config, **more),
        tensors=[*DECODER, *pairs(r"layers\.(\d+)\.", DECODER_LAYER | {"post_attention_layernorm": "ffn_norm"})],
        poolings=("last", "mean", "cls"),
    )


def qwen3_reranker():
    """Qwen3-Reranker: the same decoder, whose output is the table of its tokens."""
    tokens = Tokens()
    sizes = SIZES | {"vocab_size": len(tokens)}
    config = transformers.Qwen3Config(
        **sizes,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
    )
    return Tiny(
        name="qwen3-reranker",
        architecture="qwen3",
        model=transformers.Qwen3ForCausalLM(config),
        tokenizer="gpt2",
        keys=decoder_keys(config),
        tensors=[
            *DECODER,
            *pairs(r"model\.layers\.(\d+)\.", DECODER_LAYER | {"post_attention_layernorm": "ffn_norm"}),
            (r"lm_head\.weight", None),
        ],
        ranks=True,
        tokens=tokens,
    )


DECODERS = (qwen3, qwen3_reranker, qwen2, llama, llama_embed)
