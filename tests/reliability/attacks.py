"""What other users of a machine, authors of files and bad luck were seen to do, and the tests that hold them off.

``before`` is what the attack did to the kit of 2026-11-26. The page of ``make reliability`` lists all of it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attack:
    """One kind of attack. ``tests`` are files of tests, each with the name of one test that makes the attack."""

    what: str
    before: str
    now: str
    tests: tuple[str, ...]


ATTACKS = (
    Attack(
        "Another user reads the FIFO at which a worker waits for its turn",
        "the worker waited for up to 600 s",
        "workers wait at an inherited pipe, which has no name",
        ("tests/engines/test_turns.py::test_another_user_can_not_take_a_turn",),
    ),
    Attack(
        "Another user reads the evidence folder's name in `ps`, and leaves forged evidence or a FIFO there",
        "the evidence was taken; the FIFO stopped `exec`",
        "the folder lies in one that only this user can enter",
        ("tests/cli/execution/test_evidence_folder.py::test_another_user_who_knows_its_name_leaves_nothing_there",),
    ),
    Attack(
        "A FIFO, a device, a socket, a huge file, or a link of another user, instead of a record",
        "`report`, `history`, `export` and `fleet report` waited for ever, or ended in MemoryError",
        "one line, exit status 2; other runs are listed",
        (
            "tests/cli/test_planted_files.py::test_a_record_that_is_named",
            "tests/cli/test_planted_files.py::test_a_record_among_others",
            "tests/common/test_files.py::test_a_link_of_another_user_is_refused",
        ),
    ),
    Attack(
        "Junk, deep, huge or empty evidence",
        "a traceback took the place of the command's exit status",
        "the command keeps its status, and one line says that evidence could not be read",
        (
            "tests/cli/commands/exec/test_spoiled_evidence.py::test_the_commands_own_status_stays",
            "tests/fuzz/test_evidence.py::test_what_stands_in_the_place_of_evidence",
        ),
    ),
    Attack(
        "Records, baselines, submissions, nodes, fleets, profiles, spaces and workload files, changed at random",
        "400 changed records gave 8 different tracebacks",
        "a result, or one line",
        (
            "tests/fuzz/test_records.py::test_every_command_that_reads_a_record",
            "tests/fuzz/test_documents.py::test_a_submission",
        ),
    ),
    Attack(
        "Escape codes in each text of a record, a profile, a worker's stderr or a folder's name",
        "they reached the terminal by `report --markdown`, csv, openmetrics, `env` and tracebacks",
        "printed as `\\x1b`; files and pipes are unchanged",
        ("tests/cli/test_escape_codes.py", "tests/test_structure.py::test_only_the_writer_reaches_a_terminal"),
    ),
    Attack(
        "`\\xff` in a folder's name, or a terminal that shows ASCII alone",
        "UnicodeEncodeError",
        "readable escapes",
        ("tests/cli/test_escape_codes.py",),
    ),
    Attack(
        "A cell of a csv file that begins with `= + - @`, or has a carriage return",
        "a spreadsheet computed it; the row broke",
        "an apostrophe precedes it; it is quoted",
        ("tests/report/exports/test_formats.py::test_csv_has_no_text_that_a_spreadsheet_computes",),
    ),
    Attack(
        "Another user plants a link, a pipe or a folder where a file is written, or on the way to it",
        "the link's target was overwritten",
        "refused in one line; the user's own links go on working",
        (
            "tests/common/test_destination.py::test_a_link_that_another_user_planted_is_not_followed",
            "tests/common/test_destination.py::test_a_link_to_a_folder_on_the_way_is_not_followed",
            "tests/common/test_destination.py::test_a_folder_that_is_exchanged_meanwhile",
            "tests/common/test_destination.py::test_the_users_own_links_go_on_working",
        ),
    ),
    Attack(
        "A report for others tells user, host, paths and commands",
        "there was no other report",
        "`--redact` replaces them; a kept secret is in no file of a run",
        (
            "tests/cli/commands/test_redact.py::test_redacted_nothing_tells_who_measured_and_where",
            "tests/cli/commands/test_redact.py::test_secrets_of_the_caller_are_in_no_file_of_a_run_and_in_no_report",
            "tests/cli/commands/test_secrets.py::test_no_command_prints_or_leaves_a_secret",
        ),
    ),
    Attack(
        "A profile or a space names a program, or a variable that makes another program run code",
        "`BASH_ENV`, `PATH`, `/tmp/evil` as a prefix and `extends: ../x` were taken",
        "refused with file, line and mend; a prefix is a known launcher",
        (
            "tests/profiles/test_nothing_runs.py::test_a_variable_that_runs_code_is_refused_with_file_and_line",
            "tests/profiles/test_nothing_runs.py::test_a_prefix_starts_no_program_of_the_files_choice",
            "tests/profiles/test_nothing_runs.py::test_a_space_starts_nothing_either",
        ),
    ),
    Attack(
        "A profile names a library in `INTEL_JIT_PROFILER64` or the like, which PyTorch loads",
        "the library's code ran under `exec`",
        "refused with file, line and mend, as about 150 such variables are",
        ("tests/profiles/test_nothing_runs.py::test_a_variable_that_runs_code_is_refused_with_file_and_line",),
    ),
    Attack(
        "A workload file or a profile that others can write to, or behind another user's link",
        "its command was started, its settings were used",
        "refused with the mend; the command of any workload file is shown",
        (
            "tests/common/test_ownership.py::test_what_others_can_write_is_refused_with_its_mend",
            "tests/common/test_ownership.py::test_a_link_of_another_user_is_refused_wherever_it_leads",
            "tests/profiles/test_places.py::test_what_somebody_else_may_have_written_elsewhere_is_refused",
        ),
    ),
    Attack(
        "Versions, sizes and times of a record that no machine has (lists, texts, 10^400)",
        "tracebacks of `fleet report` and `export`",
        "one line",
        ("tests/fuzz/test_records.py::test_values_that_no_type_of_an_event_describes",),
    ),
    Attack(
        "Expressions, patterns and numbers that take long: `${9…*9…}`, 20,000 additions, 60,000 blanks, 100,000 commas",
        "6 to 19 s each, or a traceback",
        "one line at once",
        (
            "tests/profiles/test_limits.py::test_a_value_that_takes_long_is_refused_with_its_line",
            "tests/profiles/test_limits.py::test_the_slow_ones_are_judged_at_once",
        ),
    ),
    Attack(
        "A plan with 20,000 entries",
        "77 s for 2,000",
        "refused at once",
        ("tests/fuzz/test_records.py::test_a_plan_with_thousands_of_entries",),
    ),
    Attack(
        "An empty conda lock, and a channel that offers anything",
        "the first installation locked what the channel said, and installed it",
        "refused; the command that locks is named",
        (
            "tests/images/test_conda_libraries.py::"
            "test_nothing_is_installed_without_a_lock_and_the_command_that_locks_is_named",
        ),
    ),
    Attack(
        "A channel or an index by http, a redirect to http, a file without an end, a password in an address",
        "taken, or printed",
        "refused, or masked",
        (
            "tests/images/test_package_index.py::test_an_index_that_others_on_the_way_can_change_is_refused",
            "tests/images/test_conda_libraries.py::test_a_channel_that_leads_elsewhere_is_not_followed_there",
            "tests/images/test_conda_libraries.py::test_a_password_of_a_channel_is_used_and_never_printed",
        ),
    ),
    Attack(
        "Another image under the base's tag, or other Debian versions",
        "not noticed",
        "the first stops the build, and `--update` takes it; the second is printed",
        ("tests/images/test_build.py::test_another_image_under_the_name_of_the_base_is_taken_only_when_that_is_said",),
    ),
    Attack(
        "PyTorch's rendezvous listens on all addresses, and `gather_object` unpickles what arrives",
        "a port of each training on several ranks was open to the network",
        "ranks of one node meet in a private file and on the loopback interface; nothing is unpickled",
        (
            "tests/engines/test_ranks.py::test_when_a_rank_is_killed_the_others_end",
            "tests/test_structure.py::test_nothing_is_unpickled",
        ),
    ),
    Attack(
        "A container uses the privileges of root, gains others, or starts processes without end",
        "it had Docker's default capabilities and no limit",
        "no capabilities but what a profile needs, none to gain, and a limit of processes",
        ("tests/engines/test_containers.py::test_a_container_has_no_privileges",),
    ),
    Attack(
        "Another user makes the folder of torch.compile's cache first, from which PyTorch executes code",
        "the folder was used",
        "refused in one line",
        ("tests/worker/test_compiler_cache.py::test_what_another_user_has_made_first_is_refused",),
    ),
    Attack(
        "Another user holds the lock of the machine for ever",
        "a process number that anybody could have written was named",
        "the kernel names the process and its user",
        ("tests/common/test_machine_lock.py::test_another_user_who_holds_the_machine_for_ever_is_named",),
    ),
    Attack(
        "SIGKILL of `exec`, and names that another user plants for the sweep",
        "its folder stayed; a foreign folder was emptied",
        "the next command removes the folder, and leaves those of others alone",
        (
            "tests/cli/execution/test_evidence_folder.py::test_what_a_killed_command_left_is_removed_by_the_next",
            "tests/worker/test_scratch.py::test_another_user_can_not_have_anything_removed",
        ),
    ),
    Attack(
        "A machine without /proc",
        "the error named Python",
        "one line names /proc",
        ("tests/cli/test_no_proc.py::test_one_line_says_that_proc_is_missing",),
    ),
)
