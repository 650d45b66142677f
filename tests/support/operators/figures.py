"""The order and the stream of the paper's figures: t0 < t1 < t4, t0 < t2 < t5, t0 < t3 < t5."""

from support.operators.orders import closure

from cutwater.events import Data, Watermark

t0, t1, t2, t3, t4, t5 = ORDER = closure(6, [(0, 1), (1, 4), (0, 2), (2, 5), (0, 3), (3, 5)])

# Fig. 1a
STREAM = [
    Data(t0, "a"),
    Data(t1, "c"),
    Watermark(t1),
    Data(t2, "b"),
    Data(t3, "a"),
    Data(t5, "a"),
    Data(t5, "c"),
    Data(t4, "d"),
    Watermark(t5),
    Watermark(t2),
]
