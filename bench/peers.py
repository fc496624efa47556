"""What others needed for the same work: medians taken on another day, on a machine of two cores, with the same rig.

Differences under 30 % say nothing. `goal` is what this program is built for.
"""

ONE_CALL = {  # one tool call: first event ms, first request ms, request bytes, wall s, CPU s, peak MB
    "goal": (10, 15, 6_000, 0.03, 0.03, 15),
    "judais-lobi 1.0.0, json": (1_661, 1_667, 5_624, 2.12, 2.22, 99),
    "judais-lobi 1.0.0, native": (1_936, 1_946, 7_588, 2.46, 2.55, 99),
    "codex exec 0.171": (207, 322, 43_331, 0.46, 0.53, 156),
    "claude -p 2.1.197": (777, 821, 77_040, 0.97, 0.93, 297),
    "opencode run 1.18": (4_805, 4_768, 31_643, 5.17, 6.99, 499),
    "qwen-code 0.15": (3_298, 3_354, 77_586, 3.64, 4.12, 262),
    "fast-agent 0.10": (4_390, 4_275, 1_546, 5.27, 5.13, 134),
    "pydantic-ai 2.68": (3_125, 3_171, 1_086, 3.96, 3.91, 125),
    "mcp-use 1.7": (3_188, 3_401, 1_190, 4.24, 4.23, 135),
}

STEPS = {  # own work a step in ms over 200 steps: median, at the first, at the last
    "goal": ("floor + 1 + one sync", "the same", "the same"),
    "judais-lobi 1.0.0, json": (31.1, 21.1, 36.8),
    "judais-lobi 1.0.0, native": (37.9, 23.4, 55.2),
    "codex exec 0.171": (39.0, 39.2, 41.4),
    "claude -p 2.1.197": (34.8, 35.5, 39.6),
    "opencode run 1.18": (127.4, 121.2, 151.2),
    "qwen-code 0.15": (51.7, 50.1, 61.5),
    "fast-agent 0.10": (241.6, 93.7, 420.9),
    "pydantic-ai 2.68": (109.6, 23.1, 137.9),
    "mcp-use 1.7": (93.5, 26.4, 191.5),
}

BIG = {  # a result of 1 MB: own ms, peak MB; of 16 MB: own ms, peak MB
    "goal": (10, 24, 100, 64),
    "judais-lobi 1.0.0, json": (324, 113, 4_951, 326),
    "judais-lobi 1.0.0, native": (379, 113, 4_865, 326),
    "codex exec 0.171": (76, 166, "never came back", 41),
    "claude -p 2.1.197": (108, 296, "60, drops the server", 291),
    "opencode run 1.18": (292, 595, 472, 941),
    "qwen-code 0.15": (157, 264, 328, 391),
    "fast-agent 0.10": (130, 139, 250, 230),
    "pydantic-ai 2.68": (48, 131, 319, 237),
    "mcp-use 1.7": (56, 146, 636, 328),
}

CATALOGUE = {  # first request in ms with 10, 100 and 1,000 tools
    "goal": (16, 20, 60),
    "judais-lobi 1.0.0, json": (2_501, 1_959, 3_315),
    "judais-lobi 1.0.0, native": (2_316, 1_976, 3_152),
    "codex exec 0.171": (340, 330, 369),
    "claude -p 2.1.197": (1_072, 907, 1_310),
    "opencode run 1.18": (4_838, 5_066, 5_043),
    "qwen-code 0.15": (3_615, 3_408, 3_290),
    "fast-agent 0.10": (4_591, 3_822, 4_069),
    "pydantic-ai 2.68": (3_463, 3_528, 3_401),
    "mcp-use 1.7": (3_190, 4_469, 10_021),
}

TWENTY = {  # 20 runs at once with 5 calls each: wall s, CPU s, peak MB (proportional), first request ms
    "goal": (1, 1, 300, 200),
    "judais-lobi 1.0.0, json": (34.1, 61.6, 1_529, 27_336),
    "judais-lobi 1.0.0, native": (31.4, 58.5, 1_531, 25_642),
    "codex exec 0.171": (8.4, 15.5, 477, 3_768),
    "claude -p 2.1.197": (14.5, 26.0, 2_043, 10_956),
    "opencode run 1.18": (119.1, 214.2, 8_284, 82_069),
    "qwen-code 0.15": (48.8, 87.2, 6_691, 41_643),
    "fast-agent 0.10": (62.3, 112.0, 2_235, 49_780),
    "pydantic-ai 2.68": (46.4, 84.1, 2_093, 36_350),
    "mcp-use 1.7": (50.1, 89.7, 2_230, 40_844),
}

CANCEL = {  # SIGTERM while the model stalls for 30 s: ms to the last record, ms to the end of the process
    "goal": (30, 30),
    "judais-lobi 1.0.0, json": ("after waiting the call out", 29_073),
    "judais-lobi 1.0.0, native": ("after waiting the call out", 29_061),
    "codex exec 0.171": ("no last record", 23),
    "claude -p 2.1.197": ("no last record", 93),
    "opencode run 1.18": ("no last record", 82),
    "qwen-code 0.15": ("no last record", 28),
    "fast-agent 0.10": ("no last record", 23),
    "pydantic-ai 2.68": ("no last record", 18),
    "mcp-use 1.7": ("no last record", 27),
}
