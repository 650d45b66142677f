// The data of the report, and what can be asked of it.

const timeline = JSON.parse(document.getElementById("timeline").textContent);
const { tasks, streams, messages, steps, generations, commits, kept, mapping } = timeline;
const START = -1; // the cursor before the first step
const LAST = steps.length - 1;

const taskSteps = tasks.map(() => []); // of each task its steps and all recoveries
const keptTaskSteps = tasks.map(() => []); // the same of the failure-free run: places
steps.forEach((step, index) => {
    const of = step.rule === "recover" ? taskSteps : [taskSteps[step.task]];
    of.forEach((list) => list.push(index));
});
kept.forEach((index, place) => keptTaskSteps[steps[index].task].push(place));

/** The number of leading items of a sorted list that are at most a limit. */
function countUpTo(sorted, limit) {
    let low = 0;
    let high = sorted.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (sorted[middle] <= limit) low = middle + 1;
        else high = middle;
    }
    return low;
}

/** The value that changes have led to in a configuration. */
function valueAt(changes, configuration) {
    return changes.values[countUpTo(changes.at, configuration) - 1];
}

/** The rows of spans that are there in a configuration. */
function rowsAt(spans, configuration) {
    const rows = [];
    const end = countUpTo(spans.since, configuration);
    for (let row = 0; row < end; row += 1) {
        const until = spans.until[row];
        if (until === null || configuration < until) rows.push(row);
    }
    return rows;
}

/** The messages on a stream in a configuration, in their order. */
function contentAt(course, stream, configuration) {
    const spans = course.streams[stream];
    return rowsAt(spans, configuration).map((row) => spans.messages[row]);
}

/** What an observer sees in a configuration: events of committed epochs on the observed streams. */
function observedAt(course, configuration) {
    const common = valueAt(course.common, configuration);
    const seen = [];
    streams.forEach((stream, index) => {
        if (!stream.is_observed) return;
        for (const number of contentAt(course, index, configuration)) {
            const message = messages[number];
            if (message.epoch <= common && message.text !== null) seen.push(message);
        }
    });
    return seen;
}

/** Do two observers see the same? */
function isSame(ours, theirs) {
    const key = ({ stream, n, epoch, text }) => JSON.stringify([stream, n, epoch, text]);
    return ours.length === theirs.length && ours.every((m, i) => key(m) === key(theirs[i]));
}

/** The configuration of the failure-free run that shows the same as the one after a step. */
function mapped(cursor) {
    return mapping[Math.min(cursor + 1, mapping.length - 1)] ?? 0;
}
