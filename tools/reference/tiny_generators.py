"""All tiny decoders that continue a text, each with its own positions, windows, norms, scales and output."""

import tiny_gemmas
import tiny_gpts
import tiny_llamas

GENERATORS = (
    tiny_llamas.llama3,
    tiny_llamas.llama_linear,
    tiny_llamas.mistral_window,
    tiny_llamas.mixtral,
    tiny_llamas.qwen2,
    tiny_llamas.qwen2_yarn,
    tiny_llamas.qwen3,
    tiny_llamas.qwen3moe,
    tiny_gemmas.gemma,
    tiny_gemmas.gemma2,
    tiny_gemmas.gemma3,
    tiny_gemmas.phi3_window,
    tiny_gemmas.phi3_longrope,
    tiny_gemmas.olmo2,
    tiny_gemmas.olmo3,
    tiny_llamas.granite,
    tiny_llamas.smollm3,
    tiny_gemmas.cohere2,
    tiny_gpts.gpt2,
    tiny_gpts.phi2,
    tiny_gpts.starcoder2,
    tiny_gpts.gptneox,
    tiny_gpts.falcon,
    tiny_llamas.mistral3,
    tiny_llamas.gpt_oss,
)
