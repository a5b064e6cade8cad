"""Encoders that transformers does not have; own_encoders.py computes them."""

from own_encoders import Config, JinaBertV2, NeoBERT, NomicBertMoE
from tiny import BERT_EMBEDDINGS, BERT_LAYER, SIZES, VOCABULARY, Tiny, keys, pairs


def _jina_bert_v2(name, code):
    # Three heads are no power of two, for which ALiBi has slopes of its own.
    model = JinaBertV2(Config(VOCABULARY, 48, 48, num_hidden_layers=2, num_attention_heads=3, hidden_act="gelu"), code)
    return Tiny(
        name=name,
        architecture="jina-bert-v2",
        model=model,
        tokenizer="bert",
        keys=keys(model.config, **{"attention.layer_norm_epsilon": model.config.eps}),
        tensors=[
            *BERT_EMBEDDINGS,
            *pairs(
                r"encoder\.layer\.(\d+)\.",
                BERT_LAYER
                | {
                    "attention.self.layer_norm_q": "attn_q_norm",
                    "attention.self.layer_norm_k": "attn_k_norm",
                    "layer_norm_1": "attn_norm_2",
                    "mlp.gated_layers": "ffn_up",
                    "mlp.gated_layers_w": "ffn_gate",
                    "mlp.gated_layers_v": "ffn_up",
                    "mlp.wo": "ffn_down",
                    "mlp.layernorm": "layer_output_norm",
                },
            ),
        ],
        tokenizer_keys={"token_type_count": 2},
    )


def jina_bert_v2():
    """jina-embeddings-v2, as converters write it today: gate and value in one tensor."""
    return _jina_bert_v2("jina-bert-v2", code=False)


def jina_bert_v2_code():
    """jina-embeddings-v2-base-code, as converters wrote it at first: today's joins the gate in the other order."""
    return _jina_bert_v2("jina-bert-v2-code", code=True)


def nomic_bert_moe():
    """nomic-embed-text-v2-moe. Converters leave the bias behind the experts out, and llama.cpp has no place for it."""
    experts, used = 4, 2
    config = Config(**SIZES, num_attention_heads=2, hidden_act="gelu", eps=1e-5)
    return Tiny(
        name="nomic-bert-moe",
        architecture="nomic-bert-moe",
        model=NomicBertMoE(config, experts, used),
        tokenizer="t5",
        keys=keys(
            config,
            **{
                "attention.layer_norm_epsilon": config.eps,
                "attention.causal": False,
                "rope.freq_base": 10000.0,
                "expert_count": experts,
                "expert_used_count": used,
                "moe_every_n_layers": 2,
            },
        ),
        tensors=[
            *BERT_EMBEDDINGS,
            (r"emb_ln(\.weight|\.bias)", r"token_embd_norm\1"),
            *pairs(
                r"encoder\.layers\.(\d+)\.",
                {
                    "attn.Wqkv": "attn_qkv",
                    "attn.out_proj": "attn_output",
                    "norm1": "attn_output_norm",
                    "mlp.fc1": "ffn_up",
                    "mlp.fc2": "ffn_down",
                    "mlp.router": "ffn_gate_inp",
                    "norm2": "layer_output_norm",
                },
            ),
            (r"encoder\.layers\.(\d+)\.mlp\.(up|down)", r"blk.\1.ffn_\2_exps.weight"),
            (r"encoder\.layers\.\d+\.mlp\.bias", None),
        ],
        tokenizer_keys={"token_type_count": 1},
    )


def neo_bert():
    """NeoBERT. Converters write its projection as it is; llama.cpp reads all heads' queries first, then the keys."""
    config = Config(**SIZES, num_attention_heads=2, hidden_act="silu", eps=1e-6)
    return Tiny(
        name="neo-bert",
        architecture="neo-bert",
        model=NeoBERT(config),
        tokenizer="bert",
        keys=keys(
            config,
            **{
                "attention.layer_norm_rms_epsilon": config.eps,
                "attention.causal": False,
                "rope.freq_base": 10000.0,
                "rope.scaling.type": "none",
            },
        ),
        tensors=[
            (r"embeddings\.weight", "token_embd.weight"),
            (r"layer_norm\.weight", "enc.output_norm.weight"),
            *pairs(
                r"transformer_encoder\.(\d+)\.",
                {
                    "attention_norm": "attn_norm",
                    "qkv": "attn_qkv",
                    "wo": "attn_output",
                    "ffn_norm": "ffn_norm",
                    "w12": "ffn_up",
                    "w3": "ffn_down",
                },
            ),
        ],
        poolings=("cls", "mean", "last"),
    )


OWN = (jina_bert_v2, jina_bert_v2_code, nomic_bert_moe, neo_bert)
