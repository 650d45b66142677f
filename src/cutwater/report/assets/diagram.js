// The space-time diagram: the run above, the failure-free run below, and what leads to what.

function drawDiagram(root, cursor) {
    const { width, height, above, below } = laidOut(root, cursor);
    const shown = `Steps ${above.start} to ${above.stop - 1} of the run`;
    const plot = { x: gutter - 6, y: 0, width: width - gutter + 6, height };
    const verb = timeline.verdict.holds ? "explains" : "was to explain";
    root.setAttribute("height", height);
    root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    root.setAttribute("aria-label", `${shown}, and below the failure-free run`);
    root.replaceChildren(
        svg("defs", {}, hatch(), svg("clipPath", { id: "plot" }, svg("rect", plot))),
        svg("g", { "clip-path": "url(#plot)" },
            ...currentColumns(above, below, cursor),
            ...links(above, below, cursor),
            ...drawnRun(above, cursor),
            ...drawnRun(below, cursor)),
        label(0, above.lanes.top + 15, "the run", "heading"),
        label(0, below.lanes.top + 15, `the failure-free run that ${verb} it`, "heading"),
        ...names(above.lanes),
        ...names(below.lanes),
    );
    fitNames(root);
}

function drawnRun(view, cursor) {
    const lanes = tasks.flatMap((_, task) => taskLane(view, task));
    const drawn = [...brackets(view), ...thinLanes(view), ...lanes];
    const marks = [];
    for (let position = view.start; position < view.stop; position += 1) {
        const index = view.indexAt(position);
        drawn.push(...arrows(view, position, steps[index]));
        marks.push(stepMarks(view, position, index, cursor));
    }
    return [...drawn, ...marks];
}

/** The generations, above the run; above the failure-free run where its steps come from. */
function brackets(view) {
    const spans = [];
    for (let position = view.start; position < view.stop; position += 1) {
        const number = steps[view.indexAt(position)].generation;
        const span = spans[spans.length - 1];
        if (span && span.number === number) span.last = position;
        else spans.push({ number, first: position, last: position });
    }
    return spans.flatMap(({ number, first, last }) => {
        const left = view.x(first) - view.pitch * 0.36;
        const right = view.x(last) + view.pitch * 0.36;
        const y = view.lanes.brackets + 16;
        const room = right - left + view.pitch * 0.5;
        return [
            svg("path", { class: "bracket", d: `M${left} ${y + 5}V${y}H${right}V${y + 5}` }),
            label(left, y - 5, generationWords(number, view.isFailureFree), "bracket-text", room),
        ];
    });
}

function generationWords(number, isFailureFree) {
    const { epoch, is_recovered: isRecovered } = generations[number];
    const words = `generation ${number + 1}`;
    if (isFailureFree) return `from ${words}`;
    return isRecovered ? `${words}, back to ${snapshotWords(epoch)}` : words;
}

function thinLanes(view) {
    const x2 = view.x(view.stop - 1) + view.pitch * 0.5;
    const line = (y, name) => svg("line", { class: name, x1: gutter - 6, x2, y1: y, y2: y });
    const inputs = [...view.lanes.inputs.values()].map((y) => line(y, "input-lane"));
    return [...inputs, line(view.lanes.observer, "observer-lane")];
}

/** The line of a task: in colour where kept, hatched where undone, broken after a failure. */
function taskLane(view, task) {
    const positions = view.taskPositions[task];
    const y = view.lanes.tasks[task];
    const drawn = [];
    for (let i = Math.max(countUpTo(positions, view.start) - 1, 0); i <= positions.length; i += 1) {
        const [before, after] = [positions[i - 1], positions[i]];
        if (before !== undefined && before >= view.stop) break;
        const left = before === undefined ? gutter - 6 : Math.max(view.x(before), -50);
        const end = after === undefined ? view.edge(view.total - 1) : view.x(after);
        const right = Math.min(end, view.edge(view.stop + 2));
        drawn.push(...segment(view, before, after, left, right, y));
    }
    return drawn;
}

function segment(view, before, after, left, right, y) {
    const stepAt = (position) => (position === undefined ? null : steps[view.indexAt(position)]);
    const [from, to] = [stepAt(before), stepAt(after)];
    if (from && from.rule === "fail") return [];
    const isUndone = to && (to.fate === "discarded" || to.fate === "failure");
    const { epoch } = to && to.fate !== "failure" ? to : from || { epoch: 1 };
    const style = `lane ${epochClass(epoch)} ${isUndone ? "is-discarded" : ""}`;
    const path = svg("path", { class: style, d: `M${left} ${y}H${right}` });
    const box = { x: left, y: y - 9, width: Math.max(right - left, 0), height: 18 };
    return isUndone ? [svg("rect", { class: "hatched", ...box }), path] : [path];
}

/** What comes to a step from where it was sent, and what goes from it to the observer. */
function arrows(view, position, step) {
    if (step.task === null) return [];
    const to = { x: view.x(position), y: view.lanes.tasks[step.task] };
    const drawn = step.consumed.flatMap((number) => incoming(view, messages[number], to, step));
    if (step.produced.some(isOutput)) {
        const down = `M${to.x} ${to.y + 8}V${view.lanes.observer - 5}`;
        drawn.push(svg("path", { class: styled("output", step), d: down }));
        drawn.push(stagedMark(to.x, view.lanes.observer, step));
    }
    if (step.commit !== null) {
        const down = `M${to.x} ${to.y + 23}V${view.lanes.observer - 8}`;
        drawn.push(svg("path", { class: "commit-drop", d: down }));
    }
    return drawn;
}

function incoming(view, message, to, step) {
    const room = step.rule === "barrier" ? 10.5 : 7;
    if (message.sender === null) {
        const y = view.lanes.inputs.get(message.stream) ?? view.lanes.top;
        return arrow({ x: to.x, y }, to, step, 0, room);
    }
    const source = view.positionOf(message.sender);
    if (source === null) return [];
    const sender = steps[message.sender];
    const from = { x: view.x(source), y: view.lanes.tasks[sender.task] };
    return arrow(from, to, step, sender.rule === "barrier" ? 9 : 6, room);
}

function isOutput(number) {
    return streams[messages[number].stream].is_observed && messages[number].text !== null;
}

/** A step as a link to itself. */
function stepMarks(view, position, index, cursor) {
    const step = steps[index];
    const { lanes, pitch } = view;
    const x = view.x(position);
    const y = step.task === null ? null : lanes.tasks[step.task];
    const ends = [lanes.tasks[0] - 22, lanes.tasks[tasks.length - 1] + 22];
    const marks = {
        event: () => eventMark(x, y),
        barrier: () => barrierMark(x, y, step.epoch),
        fail: () => failMark(x, y),
        recover: () => recoverMark(x, ...ends, lanes.tasks, Math.min(14, pitch * 0.7)),
    }[step.rule]();
    if (step.commit !== null) marks.push(...flagMark(x, lanes.observer, step.commit));
    const box = { x: x - pitch / 2, width: pitch, ...lanes.columns };
    const words = `step ${index}: ${sentence(step)}`;
    const link = {
        href: `#step=${index}`,
        class: styled("step", step),
        "aria-label": words,
        "aria-current": index === cursor ? "step" : null,
        tabindex: index === cursor ? 0 : -1,
    };
    return svg("a", link,
        svg("title", {}, words),
        svg("rect", { class: "column-hover", ...box }),
        ...marks,
        svg("rect", { class: "touch", ...box }));
}

/** The current step; below the same step, and the configuration that shows the same. */
function currentColumns(above, below, cursor) {
    const place = cursor === START ? null : steps[cursor].place;
    const drawn = [];
    const { step: refused } = timeline.verdict;
    if (above.isInside(refused)) drawn.push(column(above, refused, "column is-refused"));
    if (cursor !== START) drawn.push(column(above, cursor, "column"));
    if (below.isInside(place)) drawn.push(column(below, place, "column"));
    drawn.push(playhead(above, cursor, "playhead"));
    drawn.push(playhead(below, mapped(cursor) - 1, "playhead is-same"));
    return drawn;
}

function column(view, position, name) {
    const x = view.x(position) - view.pitch / 2;
    return svg("rect", { class: name, x, width: view.pitch, rx: 4, ...view.lanes.columns });
}

function playhead(view, position, name) {
    const x = view.edge(position);
    const { y, height } = view.lanes.columns;
    return svg("line", { class: name, x1: x, x2: x, y1: y, y2: y + height });
}

/** From each kept step to its place below, and from the current configuration to the one alike. */
function links(above, below, cursor) {
    const [top, low, end] = [above.lanes.bottom, below.lanes.top - 2, below.lanes.columns.y];
    const middle = (top + low) / 2;
    const link = (from, to, name) => {
        const curve = `M${from} ${top}C${from} ${middle} ${to} ${middle} ${to} ${low}V${end}`;
        return svg("path", { class: `link ${name}`, d: curve });
    };
    const drawn = [];
    for (let index = above.start; index < above.stop; index += 1) {
        const { place, commit, epoch } = steps[index];
        if (place === null) continue;
        const kind = commit === null ? epochClass(epoch) : "is-commit";
        const current = index === cursor ? "is-current" : "";
        drawn.push(link(above.x(index), below.x(place), `${kind} ${current}`));
    }
    drawn.push(link(above.edge(cursor), below.edge(mapped(cursor) - 1), "is-same"));
    return drawn;
}
