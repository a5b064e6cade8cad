"""Writes MIL programs as .mlpackage directories that are the same to the byte on every machine."""

import json
import pathlib
import tempfile
import uuid

import coremltools as ct
from coremltools.proto import Model_pb2

MODEL = pathlib.Path("Data/com.apple.CoreML/model.mlmodel")

# Names the manifest's entries after what they are, where coremltools makes random ones.
NAMESPACE = uuid.UUID("6f1f2f2e-7c1c-5f0b-9a57-3f0d8c6f2a11")

# Metadata that coremltools writes and that is another at each run.
VOLATILE = ["com.github.apple.coremltools.conversion_date"]


def convert(program, target):
    """Converts a program to a float16 ML program for the given ct.target."""
    return ct.convert(
        program, source="milinternal", convert_to="mlprogram", minimum_deployment_target=target, skip_model_load=True
    )


def write(model, path, description, metadata):
    """Writes a model of `convert` to `path`, with its description and user-defined metadata."""
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(str(path))
    finish(path, description, metadata)


def write_functions(models, path, description, metadata):
    """Writes models by function name into one package, which keeps weights that they share once. The first function
    is the package's default."""
    with tempfile.TemporaryDirectory() as folder:
        functions = ct.utils.MultiFunctionDescriptor()
        for name, model in models.items():
            part = pathlib.Path(folder) / f"{name}.mlpackage"
            model.save(str(part))
            functions.add_function(str(part), src_function_name="main", target_function_name=name)
        functions.default_function_name = next(iter(models))
        ct.utils.save_multifunction(functions, str(path))
    finish(path, description, metadata)


def finish(path, description, metadata):
    """Puts metadata in, takes out what is another at each run, and writes all of it in one order."""
    spec = Model_pb2.Model()
    spec.ParseFromString((path / MODEL).read_bytes())
    own = spec.description.metadata
    own.shortDescription = description
    for key in VOLATILE:
        own.userDefined.pop(key, None)
    for key, value in metadata.items():
        own.userDefined[key] = value
    (path / MODEL).write_bytes(spec.SerializeToString(deterministic=True))

    manifest = json.loads((path / "Manifest.json").read_text(encoding="utf-8"))
    entries = manifest["itemInfoEntries"]
    names = {old: str(uuid.uuid5(NAMESPACE, entry["path"])).upper() for old, entry in entries.items()}
    manifest["itemInfoEntries"] = {names[old]: entry for old, entry in entries.items()}
    manifest["rootModelIdentifier"] = names[manifest["rootModelIdentifier"]]
    text = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
    (path / "Manifest.json").write_text(text, encoding="utf-8")
