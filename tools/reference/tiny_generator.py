"""What the tiny decoders that continue a text have in common."""

from tiny import DECODER, DECODER_LAYER, POSITIONS, Tiny, decoder_keys, head_size, pairs

HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": POSITIONS}
IDS = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
LLAMA_LAYER = DECODER_LAYER | {"post_attention_layernorm": "ffn_norm"}
OUTPUT = (r"lm_head\.weight", "output.weight")
TIED = (r"lm_head\.weight", None)


def generator(name, architecture, model, layer=LLAMA_LAYER, tokenizer="gpt2", more=(), **fields):
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


def permuted(size):
    """Makes the change of architectures that turn pairs of values side by side; the checkpoint's are half a head
    apart."""
    return {r".*attn_[qk]\.weight": lambda w: w.unflatten(0, (-1, 2, size // 2)).swapaxes(1, 2).reshape(w.shape)}


def of_llama(name, architecture, model, more=(), **fields):
    size = head_size(model.config)
    more = {"rope.dimension_count": size} | dict(more)
    return generator(name, architecture, model, more=more, change=permuted(size), **fields)
