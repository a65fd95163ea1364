"""A short soak of two processes over one folder, with a third that is killed."""

from pathlib import Path

from bench.soak import soak


def test_two_processes_that_search_edit_and_reindex_one_folder_answer_rightly_and_end_as_a_rebuild(
    tmp_path: Path,
) -> None:
    outcome = soak(tmp_path, topics=12, rounds=32, model="hashing")
    assert outcome.wrong == ()
    done = outcome.done
    assert done["write"] + done["move"] + done["delete"] == 64
    assert min(done[what] for what in ("move", "delete", "rebuilt", "brought up to date", "opened anew")) >= 2
    assert done["killed while it rebuilt"] == 2
    assert done["asked"] > 64
