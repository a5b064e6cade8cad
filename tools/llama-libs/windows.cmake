# Included after each project(): CMake would name the library libllama.dll, while
# ggml's own files drop the prefix on Windows, as every other build does.
set(CMAKE_SHARED_LIBRARY_PREFIX "")
