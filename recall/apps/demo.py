"""The work of `recall demo`: a made-up bilingual memory, and real questions that it has to answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from recall.apps.turn import Turn, Watch, play
from recall.config import Config, IndexConfig
from recall.index.sync import Progress, SyncReport
from recall.memory.memory import Memory
from recall.search.types import Recall
from recall.store.files import atomic_write
from recall.store.layout import Layout


@dataclass(frozen=True, slots=True)
class Question:
    """One question to the example memory.

    Attributes:
        text: what is asked.
        about: languages of the question and of the memory that answers it.
        expected: id of the topic that has to come first; None when nothing may be found.
    """

    text: str
    about: str
    expected: str | None


BUDGET_S: Final = Config().search.budget_ms / 1000

QUESTIONS: Final = (
    Question("数据库迁移什么时候可以执行？", "zh → zh", "project_migration_window.md"),
    Question("Should I mock the database in integration tests?", "en → en", "feedback_real_database_in_tests.md"),
    Question("疫苗运输途中温度超过多少度会报警？", "zh → en", "project_temperature_alarms.md"),
    Question("How should I explain Flutter code to the user?", "en → zh", "user_backend_lead.md"),
    Question("旺季什么时候停止发布？", "zh → en", "project_release_freeze.md"),
    Question("In which Linear project are bugs recorded?", "en → zh", "reference_tickets.md"),
    Question("旧的登录令牌什么时候失效？", "zh → mixed", "project_key_rotation.md"),
    Question("What does a sensor packet contain?", "en → mixed", "reference_sensor_protocol.md"),
    Question("今天晚饭做什么菜好吃？", "zh → nothing", None),
    Question("Write a haiku about the moon.", "en → nothing", None),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """How one question was answered.

    Attributes:
        question: what was asked.
        is_cold: whether the memory had just been opened, its model not loaded yet.
        turn: what a host would have handed over, and when.
        recall: the considered answer, without a time limit.
    """

    question: Question
    is_cold: bool
    turn: Turn
    recall: Recall

    @property
    def found(self) -> str | None:
        """Id of the topic that came first, None for none."""
        return self.recall.hits[0].topic.id if self.recall.hits else None

    @property
    def is_right(self) -> bool:
        """Whether the expected topic came first, or nothing where nothing fits."""
        return self.found == self.question.expected


def write_memory(folder: Path) -> int:
    """Writes the example memory into an empty folder; the number of files.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sources = [source for source in (files(__package__) / "demo_memory").iterdir() if source.name.endswith(".md")]
    for source in sources:
        atomic_write(folder / source.name, source.read_text(encoding="utf-8"))
    return len(sources)


def index(folder: Path, cache: Path, *, on_progress: Progress | None = None) -> SyncReport:
    """Indexes the example memory with the shipped settings, whatever the user's own are.

    Raises:
        RecallError: the model does not work.
        OSError: the cache cannot be written.
    """
    with _opened(folder, cache, background=False) as memory:
        return memory.reindex(on_progress=on_progress)


def ask(folder: Path, cache: Path) -> Iterator[Answer]:
    """Asks all questions, the first of them in the moment in which the memory is opened."""
    watch = Watch()
    with _opened(folder, cache, background=True, watch=watch) as memory:
        for number, question in enumerate(QUESTIONS):
            turn = play(memory, question.text, watch)
            yield Answer(question, number == 0, turn, memory.recall(question.text, origin=None))


def _opened(folder: Path, cache: Path, *, background: bool, watch: Watch | None = None) -> Memory:
    config = Config(index=IndexConfig(cache=str(cache)))
    return Memory.open(
        folder, project=folder, layout=Layout.PLAIN, config=config, background=background, on_event=watch
    )
