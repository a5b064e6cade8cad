"""BERT's kind: encoders that transformers has, and their rerankers."""

import torch
import transformers
from tiny import (
    BERT_EMBEDDINGS,
    BERT_LAYER,
    DECODER,
    DECODER_LAYER,
    POSITIONS,
    SIZES,
    WINDOW,
    Tiny,
    decoder_keys,
    keys,
    pairs,
    theta,
)

# nomic-bert and jina-bert-v3 as transformers has them.
POST_NORM_LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "attn_output_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.fc1": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.fc2": "ffn_down",
    "post_mlp_layernorm": "layer_output_norm",
}


def _xlm_roberta_config(**more):
    # The first two positions are never used: a row's first token has position pad_token_id + 1.
    positions = POSITIONS // 8 + 2  # a table of them is most of the file
    return transformers.XLMRobertaConfig(
        **SIZES, num_attention_heads=2, max_position_embeddings=positions, type_vocab_size=1, **more
    )


def _xlm_roberta(name, model, **more):
    config = model.config
    return Tiny(
        name=name,
        architecture="bert",
        model=model,
        tokenizer="t5",
        keys=keys(
            config,
            **{
                "context_length": config.max_position_embeddings - 2,
                "attention.layer_norm_epsilon": config.layer_norm_eps,
                "attention.causal": False,
            },
        ),
        tensors=[
            *BERT_EMBEDDINGS,
            *pairs(r"(?:roberta\.)?encoder\.layer\.(\d+)\.", BERT_LAYER),
            (r"classifier\.dense(\.weight|\.bias)", r"cls\1"),
            (r"classifier\.out_proj(\.weight|\.bias)", r"cls.output\1"),
        ],
        change={r"position_embd\.weight": lambda w: w[config.pad_token_id + 1 :]},
        tokenizer_keys={"token_type_count": 1},
        **more,
    )


def xlm_roberta():
    """bge-m3, multilingual-e5, and others of XLM-RoBERTa."""
    model = transformers.XLMRobertaModel(_xlm_roberta_config(), add_pooling_layer=False)
    return _xlm_roberta("xlm-roberta", model, poolings=("cls", "mean", "last"))


def xlm_roberta_reranker():
    """bge-reranker-v2-m3 and others of XLM-RoBERTa."""
    model = transformers.XLMRobertaForSequenceClassification(_xlm_roberta_config(num_labels=1))
    return _xlm_roberta("xlm-roberta-reranker", model, ranks=True)


def _modern_bert(name, model, **more):
    config = model.config
    return Tiny(
        name=name,
        architecture="modern-bert",
        model=model,
        tokenizer="gpt2",
        keys=keys(
            config,
            **{
                "attention.layer_norm_epsilon": config.norm_eps,
                "attention.causal": False,
                "attention.sliding_window": config.local_attention,
                "attention.sliding_window_pattern": 3,
                "hidden_activation": config.hidden_activation,
                "rope.freq_base": theta(config),
                "rope.freq_base_swa": theta(config, "sliding_attention"),
                "rope.scaling.type": "none",
            },
            **({"classifier.pooling_type": config.classifier_pooling} if more.get("ranks") else {}),
        ),
        tensors=[
            (r"(?:model\.)?embeddings\.tok_embeddings\.weight", "token_embd.weight"),
            (r"(?:model\.)?embeddings\.norm\.weight", "token_embd_norm.weight"),
            (r"(?:model\.)?final_norm\.weight", "output_norm.weight"),
            *pairs(
                r"(?:model\.)?layers\.(\d+)\.",
                {
                    "attn.Wqkv": "attn_qkv",
                    "attn.Wo": "attn_output",
                    "attn_norm": "attn_norm",
                    "mlp.Wi": "ffn_up",
                    "mlp.Wo": "ffn_down",
                    "mlp_norm": "ffn_norm",
                },
            ),
            (r"head\.dense\.weight", "cls.weight"),
            (r"head\.norm\.weight", "cls.norm.weight"),
            (r"classifier(\.weight|\.bias)", r"cls.output\1"),
        ],
        **more,
    )


def _modern_bert_config(layers=2, **more):
    sizes = SIZES | {"num_hidden_layers": layers}
    return transformers.ModernBertConfig(
        **sizes, num_attention_heads=2, max_position_embeddings=POSITIONS, local_attention=WINDOW, **_MODERN_IDS, **more
    )


_MODERN_IDS = {"pad_token_id": 1, "bos_token_id": 0, "cls_token_id": 0, "eos_token_id": 2, "sep_token_id": 2}


def modern_bert():
    """ModernBERT-embed, gte-modernbert: every third layer sees the whole row, the others a window."""
    model = transformers.ModernBertModel(_modern_bert_config(layers=4))  # whole, local, local, whole
    return _modern_bert("modern-bert", model, poolings=("mean", "cls", "last"))


def modern_bert_silu():
    """granite-embedding-small R2's relatives, which gate by SiLU."""
    model = transformers.ModernBertModel(_modern_bert_config(hidden_activation="silu"))
    return _modern_bert("modern-bert-silu", model, poolings=("cls", "mean", "last"))


def _modern_bert_reranker(pooling):
    config = _modern_bert_config(num_labels=1, classifier_pooling=pooling)
    model = transformers.ModernBertForSequenceClassification(config)
    return _modern_bert(f"modern-bert-reranker-{pooling}", model, ranks=True)


def modern_bert_reranker_mean():
    """gte-reranker-modernbert."""
    return _modern_bert_reranker("mean")


def modern_bert_reranker_cls():
    """ModernBERT's own default."""
    return _modern_bert_reranker("cls")


class EmbeddingGemma(torch.nn.Module):
    """Gemma 3 as an encoder, and the two dense layers that sentence-transformers puts behind its pooling."""

    def __init__(self, config):
        super().__init__()
        self.model = transformers.Gemma3TextModel(config)
        self.config = self.model.config
        self.dense_2 = torch.nn.Linear(config.hidden_size, 2 * config.hidden_size, bias=False)
        self.dense_3 = torch.nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)

    def forward(self, **inputs):
        return self.model(**inputs)

    def head(self, pooled):
        return self.dense_3(self.dense_2(pooled))


def gemma_embedding():
    """EmbeddingGemma: the sixth layer sees the whole row, the others a window."""
    sizes = SIZES | {"num_hidden_layers": 6, "intermediate_size": 32}
    config = transformers.Gemma3TextConfig(
        **sizes,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        query_pre_attn_scalar=16,
        max_position_embeddings=POSITIONS,
        sliding_window=WINDOW,
        use_bidirectional_attention=True,
    )
    model = EmbeddingGemma(config)
    config = model.config
    return Tiny(
        name="gemma-embedding",
        architecture="gemma-embedding",
        model=model,
        tokenizer="llama",
        keys=decoder_keys(
            config,
            **{
                "attention.sliding_window": WINDOW,
                "rope.freq_base_swa": theta(config, "sliding_attention"),
                "dense_2_feat_in": 32,
                "dense_2_feat_out": 64,
                "dense_3_feat_in": 64,
                "dense_3_feat_out": 32,
            },
        ),
        tensors=[
            *DECODER,
            *pairs(
                r"model\.layers\.(\d+)\.",
                DECODER_LAYER
                | {
                    "post_attention_layernorm": "post_attention_norm",
                    "pre_feedforward_layernorm": "ffn_norm",
                    "post_feedforward_layernorm": "post_ffw_norm",
                },
            ),
            (r"dense_2\.weight", "dense_2.weight"),
            (r"dense_3\.weight", "dense_3.weight"),
        ],
        change={r".*norm\.weight": lambda w: w + 1},  # Gemma's norms multiply by 1 + weight
        poolings=("mean",),
        head=model.head,
    )


def nomic_bert():
    """nomic-embed-text-v1.5."""
    config = transformers.NomicBertConfig(**SIZES, num_attention_heads=2, max_position_embeddings=POSITIONS)
    return _post_norm("nomic-bert", transformers.NomicBertModel(config), "bert")


def jina_bert_v3():
    """jina-embeddings-v3 without an adapter."""
    config = transformers.JinaEmbeddingsV3Config(**SIZES, num_attention_heads=2, max_position_embeddings=POSITIONS)
    return _post_norm("jina-bert-v3", transformers.JinaEmbeddingsV3Model(config, add_pooling_layer=False), "t5")


def _post_norm(name, model, tokenizer):
    config = model.config
    return Tiny(
        name=name,
        architecture=name,
        model=model,
        tokenizer=tokenizer,
        keys=keys(
            config,
            **{
                "attention.layer_norm_epsilon": config.layer_norm_eps,
                "attention.causal": False,
                "rope.freq_base": theta(config),
            },
        ),
        tensors=[*BERT_EMBEDDINGS, *pairs(r"layers\.(\d+)\.", POST_NORM_LAYER)],
        tokenizer_keys={"token_type_count": config.type_vocab_size},
    )


def eurobert():
    """EuroBERT: a Llama that sees the whole row."""
    config = transformers.EuroBertConfig(
        **SIZES,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=POSITIONS,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        mask_token_id=3,
        rope_parameters={"rope_type": "default", "rope_theta": 250000.0},
    )
    return Tiny(
        name="eurobert",
        architecture="eurobert",
        model=transformers.EuroBertModel(config),
        tokenizer="gpt2",
        keys=decoder_keys(config, **{"attention.causal": False, "rope.scaling.type": "none"}),
        tensors=[*DECODER, *pairs(r"layers\.(\d+)\.", DECODER_LAYER | {"post_attention_layernorm": "ffn_norm"})],
    )


ENCODERS = (
    xlm_roberta,
    xlm_roberta_reranker,
    modern_bert,
    modern_bert_silu,
    modern_bert_reranker_mean,
    modern_bert_reranker_cls,
    gemma_embedding,
    nomic_bert,
    jina_bert_v3,
    eurobert,
)
