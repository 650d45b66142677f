// What is beside the diagram: the current step in words, and everything as it is after it.

const MOST_CHIPS = 12;
const MOST_SEEN = 8;

function drawPanel(root, cursor) {
    root.replaceChildren(
        ...stepPart(cursor),
        ...observerPart(cursor),
        ...tasksPart(cursor),
        ...streamsPart(cursor),
    );
}

function stepPart(cursor) {
    if (cursor === START) {
        return [
            html("p", "kicker", "start"),
            html("h2", "", "before the first step"),
            html("p", "aside", "all inputs are there; nothing was read"),
        ];
    }
    const step = steps[cursor];
    const where = `step ${cursor}, generation ${step.generation + 1}`;
    return [
        html("p", "kicker", `${where}, rule ${PAPER_NAMES[step.rule]}`),
        html("h2", "", sentence(step)),
        html("p", "aside", fateWords(step, cursor)),
        html("dl", "facts", ...fact("consumes", step.consumed), ...fact("produces", step.produced)),
    ];
}

function fact(name, numbers) {
    if (!numbers.length) return [];
    const rest = numbers.length - MOST_CHIPS;
    const more = rest > 0 ? html("div", "more", `and ${rest} more`) : null;
    const shown = numbers.slice(0, MOST_CHIPS).map(messageWords);
    return [html("dt", "", name), html("dd", "", ...shown, more)];
}

function messageWords(number) {
    const { text, epoch, stream } = messages[number];
    const what = text === null ? html("span", "", `barrier of epoch ${epoch}`) : value(text);
    return html("div", "", what, html("span", "aside", ` on ${streams[stream].name}`));
}

function value(text) {
    return html("span", "value", text ?? "not recorded");
}

function observerPart(cursor) {
    const ours = observedAt(timeline.run, cursor + 1);
    const theirs = observedAt(timeline.failure_free, mapped(cursor));
    const same = isSame(ours, theirs);
    const sign = html("div", `equal ${same ? "" : "is-different"}`, same ? "=" : "≠");
    sign.setAttribute("role", "img");
    sign.setAttribute("aria-label", same ? "is equal to" : "differs from");
    const when = mapped(cursor) ? `after step ${mapped(cursor) - 1}` : "at the start";
    const words = same ? `equal: ${plural(ours.length, "event")}` : "not equal";
    return [
        html("h3", "", "what an observer sees"),
        html("div", "observers",
            seen("in the run", ours),
            sign,
            seen("in the failure-free run", theirs),
            html("p", "aside", `${words}; failure-free ${when}`)),
    ];
}

function seen(title, list) {
    const chips = html("ul", "chips");
    const before = list.length - MOST_SEEN;
    if (before > 0) chips.append(html("li", "more", `${before} before`));
    if (!list.length) chips.append(html("li", "more", "nothing yet"));
    chips.append(...list.slice(-MOST_SEEN).map(({ text }) => html("li", "chip is-visible", text)));
    return html("div", "", html("div", "aside", title), chips);
}

function tasksPart(cursor) {
    const acting = cursor === START ? null : steps[cursor].task;
    const heads = ["task", "epoch", "state", "snapshots"].map((word) => html("th", "", word));
    heads.forEach((head) => head.setAttribute("scope", "col"));
    const rows = tasks.map((task, index) => {
        const row = taskRow(task, index, cursor + 1);
        if (index === acting) row.className = "is-acting";
        return row;
    });
    const head = html("thead", "", html("tr", "", ...heads));
    return [html("h3", "", "tasks"), html("table", "tasks", head, html("tbody", "", ...rows))];
}

function taskRow(task, index, configuration) {
    const epoch = valueAt(timeline.run.epochs[index], configuration);
    const state = valueAt(timeline.run.states[index], configuration);
    const name = html("td", "", task.name);
    name.title = task.name;
    const shown = epoch === null ? html("span", "is-failed", "failed, state lost") : value(state);
    return html("tr", "",
        name,
        html("td", "number", epoch === null ? "–" : String(epoch)),
        html("td", "", shown),
        archiveCell(timeline.run.snapshots[index], configuration));
}

function archiveCell(archive, configuration) {
    const rows = rowsAt(archive, configuration);
    const cell = html("td", "number", rows.length > 3 ? "… " : "");
    rows.slice(-3).forEach((row, i) => {
        const one = html("span", "", `${i ? ", " : ""}${archive.epochs[row]}`);
        const state = archive.states[row] ?? "not recorded";
        one.title = `snapshot of epoch ${archive.epochs[row]}: ${state}`;
        cell.append(one);
    });
    return cell;
}
