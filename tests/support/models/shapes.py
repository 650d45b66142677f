"""The small graphs that are searched exhaustively; every task keeps all it saw and emits it."""

from support.checking.random_systems import keep

from cutwater.semantics.barriers import Task, initial_configuration
from cutwater.semantics.wellformed import checked_configuration, graph_of


def task(name, inputs, output):
    return Task(name, keep, tuple(inputs), output, ())


ONE = [task("a", ["x"], "z")]
PIPELINE = [task("a", ["x"], "p"), task("b", ["p"], "q"), task("c", ["q"], "z")]
SHORT_PIPELINE = [task("a", ["x"], "p"), task("b", ["p"], "z")]
DIAMOND = [
    task("a", ["x"], "p"),
    task("b", ["p"], "q"),
    task("c", ["p"], "r"),
    task("d", ["q", "r"], "z"),
]
TWO_SOURCES = [task("a", ["x", "y"], "z")]
TWO_SOURCES_TWO_TASKS = [task("a", ["x", "y"], "p"), task("b", ["p"], "z")]


def start(tasks, **inputs):
    """A valid initial configuration of a shape."""
    return checked_configuration(initial_configuration(graph_of(tasks), inputs))


def shown(moves):
    """Moves as a reader writes them: ``a takes x0, a barrier, a fails, recovery``."""
    return [_shown(move) for move in moves]


def _shown(move):
    kind = type(move).__name__
    if kind == "TakeEvent":
        m = move.message
        return f"{move.task} takes {m.stream}{m.n}={_word(m.content.payload)}"
    if kind == "Recover":
        return "recovery"
    return f"{move.task} {'barrier' if kind == 'TakeBarrier' else 'fails'}"


def _word(word):
    return f"({''.join(map(_word, word))})" if isinstance(word, tuple) else str(word)
