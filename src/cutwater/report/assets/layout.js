// Where everything in the diagram is: lanes from top to bottom, steps from left to right.

const RIGHT = 14;
const MOST_COLUMNS = 200;
const PITCH = { least: 20, most: 44 };
const HEIGHT = { heading: 30, brackets: 26, input: 30, observer: 34, between: 74, legend: 120 };
const TASK_HEIGHT = { least: 48, most: 88 };
const GUTTER = { least: 84, most: 200 };
const NAME_GAP = 16;
const LONGEST_NAME = 60;
let gutter = null; // as wide as the longest name, measured once

/** Where the lanes of a run are, from a height on. */
function lanesFrom(top, taskHeight) {
    const brackets = top + HEIGHT.heading;
    const inputs = new Map();
    let y = brackets + HEIGHT.brackets;
    streams.forEach((stream, index) => {
        if (!stream.is_input) return;
        inputs.set(index, y + 8);
        y += HEIGHT.input;
    });
    const ofTasks = tasks.map((_, index) => y + taskHeight * (index + 0.42));
    y += taskHeight * tasks.length;
    const bottom = y + HEIGHT.observer;
    const columns = { y: brackets + 22, height: bottom - brackets - 22 };
    return { top, brackets, columns, inputs, tasks: ofTasks, observer: y + 12, bottom };
}

/** The height of a task's lane: what fills the screen, within reason. */
function fittingTaskHeight(top) {
    const fixed = lanesFrom(0, 0).bottom * 2 + HEIGHT.between + HEIGHT.legend;
    const spare = (window.innerHeight - top - fixed) / (2 * tasks.length);
    return Math.min(Math.max(spare, TASK_HEIGHT.least), TASK_HEIGHT.most);
}

/** The first column that is drawn: of a long run a page around the cursor. */
function windowAround(center, total, columns) {
    if (total <= columns) return 0;
    const half = Math.floor(columns / 2);
    const start = Math.floor((Math.floor(Math.max(center, 0) / half) - 0.5) * half);
    return Math.min(Math.max(start, 0), total - columns);
}

/** The first column of the failure-free run: the middle of what is kept above is in the middle. */
function windowBelow(above, cursor, columns) {
    if (kept.length <= columns) return 0;
    const places = [];
    for (let index = above.start; index < above.stop; index += 1) {
        if (steps[index].place !== null) places.push(steps[index].place);
    }
    const middle = places.length ? (places[0] + places[places.length - 1] + 1) / 2 : mapped(cursor);
    return Math.min(Math.max(Math.round(middle - columns / 2), 0), kept.length - columns);
}

/** The part of a run that is drawn; a position is the place of a step in it. */
function view(run, lanes, start, columns, pitch) {
    const stop = Math.min(start + columns, run.total);
    return {
        ...run,
        lanes,
        start,
        stop,
        pitch,
        x: (position) => gutter + pitch * (position - start + 0.5),
        edge: (position) => gutter + pitch * (position - start + 1),
        isInside: (position) => position !== null && position >= start && position < stop,
    };
}

const THE_RUN = {
    isFailureFree: false,
    total: steps.length,
    taskPositions: taskSteps,
    indexAt: (position) => position,
    positionOf: (index) => index,
};

const THE_FAILURE_FREE_RUN = {
    isFailureFree: true,
    total: kept.length,
    taskPositions: keptTaskSteps,
    indexAt: (place) => kept[place],
    positionOf: (index) => steps[index].place,
};

/** Both runs as they fit into a width. */
function laidOut(root, cursor) {
    gutter ??= measuredGutter(root);
    const width = Math.max(root.clientWidth || root.parentNode.clientWidth, 480);
    const room = width - gutter - RIGHT;
    const columns = Math.min(MOST_COLUMNS, Math.max(8, Math.floor(room / PITCH.least)));
    const pitch = Math.min(PITCH.most, room / Math.min(columns, Math.max(steps.length, 1)));
    const taskHeight = fittingTaskHeight(root.getBoundingClientRect().top + window.scrollY);
    const upper = lanesFrom(0, taskHeight);
    const lower = lanesFrom(upper.bottom + HEIGHT.between, taskHeight);
    const start = windowAround(cursor, steps.length, columns);
    const above = view(THE_RUN, upper, start, columns, pitch);
    const startBelow = windowBelow(above, cursor, columns);
    const below = view(THE_FAILURE_FREE_RUN, lower, startBelow, columns, pitch);
    return { width, height: lower.bottom + 4, above, below };
}

/** The names of the lanes, at the left. */
function names(lanes) {
    const named = (y, name, kind) => label(gutter - NAME_GAP, y, name.slice(0, LONGEST_NAME), kind);
    return [
        ...[...lanes.inputs].map(([index, y]) => named(y + 4, streams[index].name, "stream-name")),
        ...tasks.map((task, index) => named(lanes.tasks[index] + 4.5, task.name, "task-name")),
        named(lanes.observer + 4, "observer", "observer-name"),
    ];
}

/** The width of the longest name, within reason. */
function measuredGutter(root) {
    const all = names(lanesFrom(0, 0));
    root.replaceChildren(...all);
    const widths = all.map((name) => name.getComputedTextLength());
    return Math.min(Math.max(...widths, GUTTER.least) + NAME_GAP + 4, GUTTER.most);
}

/** Cut the names that are still too long. */
function fitNames(root) {
    const room = gutter - NAME_GAP;
    for (const name of root.querySelectorAll(".task-name, .stream-name")) {
        const whole = name.textContent;
        let length = whole.length;
        while (length > 1 && name.getComputedTextLength() > room) {
            length -= 1;
            name.textContent = `${whole.slice(0, length)}…`;
        }
        if (length < whole.length) name.append(svg("title", {}, whole));
    }
}
