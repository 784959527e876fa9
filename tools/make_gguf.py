#!/usr/bin/env python3
"""Writes a GGUF model with the shape of DeepSeek-V2-Lite and random weights in the types that a Q4_K_M file has, to
measure with. One chunk of random blocks of each type is written again and again, so it takes no time to make.

    tools/make_gguf.py OUT.gguf [--layers N] [--type Q4_K|Q4_0|Q8_0] [--seed S]
"""
import argparse
import random
import struct

# id, elements and bytes of a block, places of the binary16 scales in it
TYPES = {"F32": (0, 1, 4, ()), "Q4_0": (2, 32, 18, (0,)), "Q5_0": (6, 32, 22, (0,)), "Q8_0": (8, 32, 34, (0,)),
         "Q4_K": (12, 256, 144, (0, 2)), "Q6_K": (14, 256, 210, (208,))}
CHUNK_BLOCKS = 4096

HIDDEN, HEADS, RANK, NOPE, ROPE, VALUE, DENSE, WIDTH, EXPERTS, SHARED, VOCABULARY = (
    2048, 16, 512, 128, 64, 128, 10944, 1408, 64, 2, 102400)


def tensors(layers, kind):
    """name, sizes (fastest first), type."""
    def fitting(cols, wanted):
        if kind != "Q4_K":
            return kind
        if cols % 256 == 0:
            return wanted
        return {"Q4_K": "Q5_0", "Q6_K": "Q8_0"}[wanted]

    def matrix(name, *sizes, wanted="Q4_K"):
        return name, sizes, fitting(sizes[0], wanted)

    yield matrix("token_embd.weight", HIDDEN, VOCABULARY)
    yield "output_norm.weight", (HIDDEN,), "F32"
    yield matrix("output.weight", HIDDEN, VOCABULARY, wanted="Q6_K")
    for layer in range(layers):
        better = "Q6_K" if layer < layers // 8 or layer >= 7 * layers // 8 or layer % 3 == 2 else "Q4_K"
        blk = f"blk.{layer}."
        yield blk + "attn_norm.weight", (HIDDEN,), "F32"
        yield blk + "ffn_norm.weight", (HIDDEN,), "F32"
        yield blk + "attn_kv_a_norm.weight", (RANK,), "F32"
        yield matrix(blk + "attn_q.weight", HIDDEN, HEADS * (NOPE + ROPE))
        yield matrix(blk + "attn_kv_a_mqa.weight", HIDDEN, RANK + ROPE)
        yield matrix(blk + "attn_kv_b.weight", RANK, HEADS * (NOPE + VALUE), wanted=better)
        yield matrix(blk + "attn_output.weight", HEADS * VALUE, HIDDEN)
        if layer == 0:
            yield matrix(blk + "ffn_gate.weight", HIDDEN, DENSE)
            yield matrix(blk + "ffn_up.weight", HIDDEN, DENSE)
            yield matrix(blk + "ffn_down.weight", DENSE, HIDDEN, wanted=better)
            continue
        yield blk + "ffn_gate_inp.weight", (HIDDEN, EXPERTS), "F32"
        yield matrix(blk + "ffn_gate_shexp.weight", HIDDEN, SHARED * WIDTH)
        yield matrix(blk + "ffn_up_shexp.weight", HIDDEN, SHARED * WIDTH)
        yield matrix(blk + "ffn_down_shexp.weight", SHARED * WIDTH, HIDDEN, wanted=better)
        yield matrix(blk + "ffn_gate_exps.weight", HIDDEN, WIDTH, EXPERTS)
        yield matrix(blk + "ffn_up_exps.weight", HIDDEN, WIDTH, EXPERTS)
        yield matrix(blk + "ffn_down_exps.weight", WIDTH, HIDDEN, EXPERTS, wanted=better)


def chunk_of(kind, rng):
    _, elements, size, halves = TYPES[kind]
    if kind == "F32":
        return struct.pack(f"<{CHUNK_BLOCKS}f", *(rng.gauss(0, 0.02) for _ in range(CHUNK_BLOCKS)))
    data = bytearray(rng.randbytes(CHUNK_BLOCKS * size))
    for block in range(CHUNK_BLOCKS):
        for place in halves:
            data[block * size + place:block * size + place + 2] = struct.pack("<e", rng.uniform(1, 2) * 1e-4)
    return bytes(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("out")
    parser.add_argument("--layers", type=int, default=27)
    parser.add_argument("--type", choices=("Q4_K", "Q4_0", "Q8_0"), default="Q4_K")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)

    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    keys = [("general.architecture", "deepseek2")] + [("deepseek2." + key, value) for key, value in {
        "block_count": args.layers, "context_length": 163840, "embedding_length": HIDDEN, "feed_forward_length": DENSE,
        "attention.head_count": HEADS, "attention.head_count_kv": HEADS, "attention.kv_lora_rank": RANK,
        "attention.key_length": NOPE + ROPE, "attention.value_length": VALUE,
        "attention.layer_norm_rms_epsilon": 1e-6, "vocab_size": VOCABULARY, "expert_count": EXPERTS,
        "expert_used_count": 6, "expert_shared_count": SHARED, "expert_feed_forward_length": WIDTH,
        "expert_weights_scale": 1.0, "expert_gating_func": 1, "expert_group_count": 1, "expert_group_used_count": 1,
        "leading_dense_block_count": 1, "rope.dimension_count": ROPE, "rope.freq_base": 10000.0,
        "rope.scaling.type": "yarn", "rope.scaling.factor": 40.0, "rope.scaling.original_context_length": 4096,
        "rope.scaling.yarn_log_multiplier": 0.0707, "rope.scaling.yarn_beta_fast": 32.0,
        "rope.scaling.yarn_beta_slow": 1.0}.items()]
    table = list(tensors(args.layers, args.type))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(table), len(keys))
    for key, value in keys:
        head += text(key)
        if isinstance(value, str):
            head += struct.pack("<I", 8) + text(value)
        elif isinstance(value, float):
            head += struct.pack("<If", 6, value)
        else:
            head += struct.pack("<II", 4, value)
    offset, sizes = 0, []
    for name, dims, kind in table:
        number, elements, size, _ = TYPES[kind]
        count = 1
        for dim in dims:
            count *= dim
        sizes.append(count // elements * size)
        head += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, offset)
        offset += -(-sizes[-1] // 32) * 32
    chunks = {kind: chunk_of(kind, rng) for kind in {kind for _, _, kind in table}}
    with open(args.out, "wb") as file:
        file.write(head + bytes(-len(head) % 32))
        for (_, _, kind), size in zip(table, sizes):
            chunk = chunks[kind]
            for _ in range(size // len(chunk)):
                file.write(chunk)
            file.write(chunk[:size % len(chunk)] + bytes(-size % 32))
    print(f"{args.out}: {offset / 1e9:.2f} GB in {len(table)} tensors")


if __name__ == "__main__":
    main()
