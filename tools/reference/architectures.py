"""Tiny models of the architectures that llama.cpp embeds and ranks with: weights from a seed, and what each is called
in a GGUF file.

Names and metadata are those that llama.cpp's own converter writes. The shapes are small and uneven on purpose: head
sizes that do not divide the width, one key head for several queries, windows that the longer rows overrun.
"""

import dataclasses
import re
from collections.abc import Callable

import torch
import transformers
from own_encoders import Config, JinaBertV2, NeoBERT, NomicBertMoE
from qwen3_reranker import Tokens

VOCABULARY = 96
POSITIONS = 128
WINDOW = 16  # of local attention: half of it to each side


@dataclasses.dataclass
class Tiny:
    """A model with weights, and how it is written as GGUF.

    `tensors` are pairs of a pattern over torch's names and the GGUF name, in which `\\1` is the layer; what matches
    none is an error, so nothing of a model is left out unseen. A GGUF name of None is a tensor that llama.cpp does not
    read. `change` are functions of a weight, by patterns over GGUF names. `keys` are the metadata under the
    architecture's name.
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
    tokens: Tokens | None = None  # of a reranker by template

    def gguf_tensors(self):
        """Yields (name, float32 array) of every tensor that the file holds."""
        for name, weight in self.model.state_dict().items():
            target = self._target(name)
            if target is None:
                continue
            for pattern, change in self.change.items():
                if re.fullmatch(pattern, target):
                    weight = change(weight)
            yield target, weight.float().numpy()
        if self.tokens:
            rows = self.tokens.ids("yes") + self.tokens.ids("no")
            yield "cls.output.weight", self.model.lm_head.weight[rows].detach().numpy()

    def _target(self, name):
        for pattern, target in self.tensors:
            if match := re.fullmatch(pattern, name):
                return target and match.expand(target)
        raise ValueError(f"{self.name}: no GGUF name for {name}")


def drawn(model, seed):
    """Returns the model with weights drawn from a seed, large enough that every part of it shows in the result.

    They are rounded to bfloat16, which float32 holds exactly and which compresses to half.
    """
    draw = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        values = torch.randn(weight.shape, generator=draw)
        if "embed" in name and weight.dim() > 1:
            values *= 0.3
        elif weight.dim() > 1:
            values *= 1.2 / weight.shape[-1] ** 0.5
        elif name.endswith("bias"):
            values *= 0.2
        else:  # a norm
            values = 1 + 0.2 * values
        weight.data = values.bfloat16().float()
    return model.eval()


def _pairs(prefix, names):
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

# What every file says of its shape. Each architecture adds what it needs.
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3}


def _keys(config, **more):
    keys = {
        "context_length": POSITIONS,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "block_count": config.num_hidden_layers,
        "attention.head_count": config.num_attention_heads,
    }
    return keys | more


def _xlm_roberta_config(**more):
    # The first two positions are never used: a row's first token has position pad_token_id + 1.
    return transformers.XLMRobertaConfig(
        **SIZES, num_attention_heads=2, max_position_embeddings=POSITIONS + 2, type_vocab_size=1, **more
    )


def _xlm_roberta(name, model, **more):
    config = model.config
    return Tiny(
        name=name,
        architecture="bert",
        model=model,
        tokenizer="t5",
        keys=_keys(config, **{"attention.layer_norm_epsilon": config.layer_norm_eps, "attention.causal": False}),
        tensors=[
            *BERT_EMBEDDINGS,
            *_pairs(r"(?:roberta\.)?encoder\.layer\.(\d+)\.", BERT_LAYER),
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


def qwen3():
    """Qwen3-Embedding: a decoder, pooled by its last token. Its heads are wider than the model divided among them."""
    config = transformers.Qwen3Config(
        **SIZES, num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=POSITIONS
    )
    return Tiny(
        name="qwen3",
        architecture="qwen3",
        model=transformers.Qwen3Model(config),
        tokenizer="gpt2",
        keys=_decoder_keys(config),
        tensors=[*DECODER, *_pairs(r"layers\.(\d+)\.", DECODER_LAYER | {"post_attention_layernorm": "ffn_norm"})],
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
        max_position_embeddings=4 * POSITIONS,
        tie_word_embeddings=True,
    )
    return Tiny(
        name="qwen3-reranker",
        architecture="qwen3",
        model=transformers.Qwen3ForCausalLM(config),
        tokenizer="gpt2",
        keys=_decoder_keys(config, context_length=4 * POSITIONS),
        tensors=[
            *DECODER,
            *_pairs(r"model\.layers\.(\d+)\.", DECODER_LAYER | {"post_attention_layernorm": "ffn_norm"}),
            (r"lm_head\.weight", None),
        ],
        ranks=True,
        tokens=tokens,
    )


def _decoder_keys(config, **more):
    return _keys(
        config,
        **{
            "attention.head_count_kv": config.num_key_value_heads,
            "attention.key_length": config.head_dim,
            "attention.value_length": config.head_dim,
            "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
            "rope.freq_base": _theta(config),
        }
        | more,
    )


def _theta(config, kind="full_attention"):
    parameters = config.rope_parameters
    return float(parameters.get(kind, parameters)["rope_theta"])


def _modern_bert(name, model, **more):
    config = model.config
    return Tiny(
        name=name,
        architecture="modern-bert",
        model=model,
        tokenizer="gpt2",
        keys=_keys(
            config,
            **{
                "attention.layer_norm_epsilon": config.norm_eps,
                "attention.causal": False,
                "attention.sliding_window": config.local_attention,
                "attention.sliding_window_pattern": 3,
                "hidden_activation": config.hidden_activation,
                "rope.freq_base": _theta(config),
                "rope.freq_base_swa": _theta(config, "sliding_attention"),
                "rope.scaling.type": "none",
            },
            **({"classifier.pooling_type": config.classifier_pooling} if more.get("ranks") else {}),
        ),
        tensors=[
            (r"(?:model\.)?embeddings\.tok_embeddings\.weight", "token_embd.weight"),
            (r"(?:model\.)?embeddings\.norm\.weight", "token_embd_norm.weight"),
            (r"(?:model\.)?final_norm\.weight", "output_norm.weight"),
            *_pairs(
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
        keys=_decoder_keys(
            config,
            **{
                "attention.sliding_window": WINDOW,
                "rope.freq_base_swa": _theta(config, "sliding_attention"),
                "dense_2_feat_in": 32,
                "dense_2_feat_out": 64,
                "dense_3_feat_in": 64,
                "dense_3_feat_out": 32,
            },
        ),
        tensors=[
            *DECODER,
            *_pairs(
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
        keys=_keys(
            config,
            **{
                "attention.layer_norm_epsilon": config.layer_norm_eps,
                "attention.causal": False,
                "rope.freq_base": _theta(config),
            },
        ),
        tensors=[*BERT_EMBEDDINGS, *_pairs(r"layers\.(\d+)\.", POST_NORM_LAYER)],
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
        keys=_decoder_keys(config, **{"attention.causal": False, "rope.scaling.type": "none"}),
        tensors=[*DECODER, *_pairs(r"layers\.(\d+)\.", DECODER_LAYER | {"post_attention_layernorm": "ffn_norm"})],
    )


def _jina_bert_v2(name, split):
    # Three heads are no power of two, for which ALiBi has slopes of its own.
    model = JinaBertV2(Config(VOCABULARY, 48, 48, num_hidden_layers=2, num_attention_heads=3, hidden_act="gelu"), split)
    return Tiny(
        name=name,
        architecture="jina-bert-v2",
        model=model,
        tokenizer="bert",
        keys=_keys(model.config, **{"attention.layer_norm_epsilon": model.config.eps}),
        tensors=[
            *BERT_EMBEDDINGS,
            *_pairs(
                r"encoder\.layer\.(\d+)\.",
                BERT_LAYER
                | {
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
    return _jina_bert_v2("jina-bert-v2", split=False)


def jina_bert_v2_split():
    """jina-embeddings-v2, as converters wrote it at first."""
    return _jina_bert_v2("jina-bert-v2-split", split=True)


def nomic_bert_moe():
    """nomic-embed-text-v2-moe. Converters leave the bias behind the experts out, and llama.cpp has no place for it."""
    experts, used = 4, 2
    config = Config(**SIZES, num_attention_heads=2, hidden_act="gelu", eps=1e-5)
    return Tiny(
        name="nomic-bert-moe",
        architecture="nomic-bert-moe",
        model=NomicBertMoE(config, experts, used),
        tokenizer="t5",
        keys=_keys(
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
            *_pairs(
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
        keys=_keys(
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
            *_pairs(
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


ARCHITECTURES = (
    xlm_roberta,
    xlm_roberta_reranker,
    qwen3,
    qwen3_reranker,
    modern_bert,
    modern_bert_silu,
    modern_bert_reranker_mean,
    modern_bert_reranker_cls,
    gemma_embedding,
    nomic_bert,
    jina_bert_v2,
    jina_bert_v2_split,
    jina_bert_v3,
    eurobert,
    nomic_bert_moe,
    neo_bert,
)
