"""Hardware profiles by name: a literal table, with where each number comes from.

``a100-80g`` behaves like a model of 30B parameters, 3B of them active, on one A100-80G. The others are **estimates**
derived from it by data-sheet ratios, not measurements: fit your own with ``pointsman fit-profile``.

- prefill time a token: by dense BF16 TFLOPS (A100 312)
- decode time a sequence and a KV token: by memory bandwidth (A100 2,039 GB/s)
- step overhead: 3 ms of launch and scheduling, and 5 ms of weights read, by bandwidth
- KV capacity: (90 % of memory - 23 GB of weights) / 98,304 bytes a token (48 layers, 4 KV heads of 128, BF16)
"""

from collections.abc import Mapping

from router.core.hardware import HardwareProfile

A100_80G = HardwareProfile(
    name="a100-80g",
    t0_s=0.008,
    prefill_s_per_token=1 / 20_000,
    decode_s_per_sequence=0.12e-3,
    decode_s_per_kv_token=2e-8,
    kv_capacity_tokens=500_000,
    source="a 30B-A3B model on one A100-80G; data sheet: 312 TFLOPS BF16, 2,039 GB/s, 80 GB",
)

_ESTIMATES = (
    HardwareProfile(
        name="h100",
        t0_s=0.00604,
        prefill_s_per_token=1.577e-5,
        decode_s_per_sequence=7.30e-5,
        decode_s_per_kv_token=1.217e-8,
        kv_capacity_tokens=500_000,
        source="estimate from NVIDIA's H100 SXM data sheet: 989 TFLOPS BF16, 3,350 GB/s, 80 GB",
    ),
    HardwareProfile(
        name="h200",
        t0_s=0.00512,
        prefill_s_per_token=1.577e-5,
        decode_s_per_sequence=5.10e-5,
        decode_s_per_kv_token=8.50e-9,
        kv_capacity_tokens=1_056_000,
        source="estimate from NVIDIA's H200 SXM data sheet: 989 TFLOPS BF16, 4,800 GB/s, 141 GB",
    ),
    HardwareProfile(
        name="h20",
        t0_s=0.00555,
        prefill_s_per_token=1.054e-4,
        decode_s_per_sequence=6.12e-5,
        decode_s_per_kv_token=1.020e-8,
        kv_capacity_tokens=645_000,
        source="estimate from NVIDIA's H20 specification: 148 TFLOPS BF16, 4,000 GB/s, 96 GB",
    ),
    HardwareProfile(
        name="mi300x",
        t0_s=0.00492,
        prefill_s_per_token=1.194e-5,
        decode_s_per_sequence=4.62e-5,
        decode_s_per_kv_token=7.70e-9,
        kv_capacity_tokens=1_523_000,
        source="estimate from AMD's MI300X data sheet: 1,307 TFLOPS BF16, 5,300 GB/s, 192 GB",
    ),
    HardwareProfile(
        name="l40s",
        t0_s=0.0148,
        prefill_s_per_token=4.309e-5,
        decode_s_per_sequence=2.832e-4,
        decode_s_per_kv_token=4.720e-8,
        kv_capacity_tokens=205_000,
        source="estimate from NVIDIA's L40S data sheet: 362 TFLOPS BF16, 864 GB/s, 48 GB",
    ),
    HardwareProfile(
        name="tpu-v5e",
        t0_s=0.00456,
        prefill_s_per_token=9.898e-6,
        decode_s_per_sequence=3.734e-5,
        decode_s_per_kv_token=6.224e-9,
        kv_capacity_tokens=937_000,
        source="estimate for a slice of 8 chips from Google Cloud's TPU v5e page: 197 TFLOPS, 819 GB/s, 16 GB a chip",
    ),
    HardwareProfile(
        name="tpu-v6e",
        t0_s=0.00455,
        prefill_s_per_token=4.248e-6,
        decode_s_per_sequence=3.730e-5,
        decode_s_per_kv_token=6.216e-9,
        kv_capacity_tokens=937_000,
        source="estimate for a slice of 4 chips from Google Cloud's TPU v6e page: 918 TFLOPS, 1,640 GB/s, 32 GB a chip",
    ),
)

LINEAR_DECODE = HardwareProfile(
    name="linear-decode",
    t0_s=0.0,
    prefill_s_per_token=1 / 20_000,
    decode_s_per_sequence=0.015,
    decode_s_per_kv_token=0.0,
    kv_capacity_tokens=500_000,
    source="a straight decode curve, 15 ms at BS 1 to 120 ms at BS 8: 15 ms a sequence",
)

HARDWARE_PROFILES: Mapping[str, HardwareProfile] = {p.name: p for p in (A100_80G, *_ESTIMATES, LINEAR_DECODE)}
DEFAULT_PROFILE = A100_80G.name
