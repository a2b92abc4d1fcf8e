# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests of other modules that matter most, once more with warm slots: those that are short."""
import functools
import importlib

import lib

AGAIN = {
    "cases_memory": ("counters_of_a_short_life",),
    "endings": ("command_not_found", "cpu_time", "daemonised", "exit_codes", "forks", "memory",
                "operator_kills", "policy_lost", "tiny_cpu", "working_directory"),
    "harpe": ("bytes", "calculate"),
    "leaks": ("isolated", "own_ports"),
    "limits": ("no_ledger_after_runs", "origins"),
    "operator": ("kill_means_gone", "show"),
    "profiles": ("reject",),
    "survival": ("client_killed", "daemon_killed", "process_group_killed", "supervisor_killed"),
    "terminal": ("client_killed", "interrupt_key", "interrupt_key_during_set_up", "keys_arrive",
                 "output_is_complete"),
    "view": ("cannot_be_usurped", "hide_tells_nothing", "is_an_allow_list", "pin_is_read_only",
             "pseudo_terminals", "read_only", "tmp_size", "users"),
}

SLOTS_MAY_STAY = True


def again(test):
    @functools.wraps(test)
    def inside():
        with lib.warm(2):
            test()
            lib.assert_nothing_left()
    return inside


for module, names in AGAIN.items():
    for name in names:
        found = getattr(importlib.import_module(f"test_{module}"), f"test_{name}")
        globals()[f"test_{module}_{name}"] = again(found)
