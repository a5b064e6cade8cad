"""A tiny reranker of Qwen3's kind, with a tokenizer of its own: its scores depend on which tokens a template becomes.

Source: Zhang et al., "Qwen3 Embedding: Advancing Text Embedding and Reranking Through Foundation Models" (2025),
section 2, and the usage that the published rerankers state: what stands before the instruction, the three fields, and
what stands behind them are tokenised apart, and the score is the softmax over the logits of "yes" and "no".
"""

import gguf
import torch
import transformers
from tokenizers import AddedToken, pre_tokenizers

BEFORE = "<|im_start|>system\nSay yes or no.<|im_end|>\n<|im_start|>user\n"
FIELDS = "<Instruct>: Does it answer?\n<Query>: {query}\n<Document>: {document}"
BEHIND = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<think>", "</think>")

# Tokens of several bytes, each made from the left. Some reach over the places where a text meets the template.
WORDS = ("yes", "no", "Ġwhat", "Ġis", "Ġthe", "?Ċ", ">:", "ĠĊ", "ĊĊ", ".Ċ", ":Ċ", "Query", "Document", "Ġ(", 'Ġ"')

PAIRS = (
    ("what is the blue whale?", "The blue whale is the largest animal."),
    ("Wale", 'Ein Wal ("blau").'),
    ("what is it\n", "\n\nindented"),
    ("", " two spaces, and a line's end\n"),
    ("\u9be8\u306f\uff1f", "\u9be8\u306f\u54fa\u4e73\u985e\u3002 2 3"),
    ("say: yes.", "no"),
)


class Tokens:
    """The tokenizer: bytes, and WORDS."""

    def __init__(self):
        vocabulary = {token: i for i, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
        self.merges = []
        for word in WORDS:
            for i in range(1, len(word)):
                pair = word[:i], word[i]
                if pair not in self.merges:
                    self.merges.append(pair)
                    vocabulary[word[: i + 1]] = len(vocabulary)
        self.tokenizer = transformers.Qwen2Tokenizer(vocab=vocabulary, merges=list(self.merges))
        self.tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in CONTROL])
        self.tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in MARKS])

    def __len__(self):
        return len(self.tokenizer)

    def ids(self, text):
        """Returns the ids of a text as it is."""
        return self.tokenizer.encode(text, add_special_tokens=False)

    def row(self, query, document):
        """Returns the ids of a pair as the published rerankers' usage makes them."""
        fields = FIELDS.replace("{query}", query).replace("{document}", document)
        return self.ids(BEFORE) + self.ids(fields) + self.ids(BEHIND)

    def write(self, writer):
        """Adds the vocabulary and the template to a file."""
        tokens = sorted(self.tokenizer.get_vocab().items(), key=lambda item: item[1])
        kinds = dict.fromkeys(CONTROL, gguf.TokenType.CONTROL) | dict.fromkeys(MARKS, gguf.TokenType.USER_DEFINED)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("qwen2")
        writer.add_token_list([token for token, _ in tokens])
        writer.add_token_types([kinds.get(token, gguf.TokenType.NORMAL) for token, _ in tokens])
        writer.add_token_merges([" ".join(pair) for pair in self.merges])
        writer.add_eos_token_id(self.ids("<|im_end|>")[0])
        writer.add_pad_token_id(self.ids("<|endoftext|>")[0])
        writer.add_bool("tokenizer.ggml.add_bos_token", False)
        writer.add_chat_template([{"name": "rerank", "template": BEFORE + FIELDS + BEHIND}])
        writer.add_classifier_output_labels(["yes", "no"])

    def pairs(self, model):
        """Yields each pair: the ids that a caller sends, the whole row's, and the score."""
        yes, no = self.ids("yes"), self.ids("no")
        for query, document in PAIRS:
            row = self.row(query, document)
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([row])).logits[0, -1, yes + no]
            # A text has the whitespace beside it in the template.
            parts = {"query": self.ids(f" {query}\n"), "document": self.ids(f" {document}")}
            yield parts | {"row": row, "score": logits.softmax(0)[0].item()}
