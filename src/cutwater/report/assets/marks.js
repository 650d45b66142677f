// Elements, and the marks that both runs and the legend share. Text is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";
const LETTER = 7; // about the width of a letter

function svg(name, attributes = {}, ...children) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) {
        if (value !== null && value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
}

function html(name, className = "", ...children) {
    const element = document.createElement(name);
    if (className) element.className = className;
    element.append(...children.filter((child) => child !== null));
    return element;
}

function label(x, y, words, className, room = Infinity) {
    const most = Math.max(2, Math.floor(room / LETTER));
    if (words.length <= most) return svg("text", { x, y, class: className }, words);
    const cut = `${words.slice(0, most - 1)}…`;
    return svg("text", { x, y, class: className }, cut, svg("title", {}, words));
}

function epochClass(epoch) {
    return `epoch-${(((epoch - 1) % 3) + 3) % 3}`;
}

const FATES = {
    kept: "",
    failure: "",
    open: "is-open",
    unchecked: "is-open",
    discarded: "is-discarded",
};

function styled(base, step) {
    return `${base} ${epochClass(step.epoch)} ${FATES[step.fate]}`;
}

function eventMark(x, y) {
    return [svg("circle", { class: "mark", cx: x, cy: y, r: 5 })];
}

function barrierMark(x, y, epoch) {
    const digits = String(epoch);
    return [
        svg("path", { class: "snapshot", d: `M${x} ${y + 8}v7m-5 0h10v7h-10z` }),
        svg("path", { class: "mark", d: `M${x} ${y - 9.5}l9.5 9.5-9.5 9.5-9.5-9.5z` }),
        digits.length < 3
            ? svg("text", { class: "epoch-number", x, y: y + 3.6 }, digits)
            : svg("text", { class: "epoch-number is-outside", x, y: y - 13 }, digits),
    ];
}

function failMark(x, y) {
    return [svg("path", { class: "cross", d: `M${x - 5.5} ${y - 5.5}l11 11m0-11l-11 11` })];
}

function recoverMark(x, top, bottom, lanes, width = 14) {
    const height = bottom - top;
    return [
        svg("rect", { class: "recovery", x: x - width / 2, y: top, width, height, rx: 3 }),
        svg("line", { class: "recovery-line", x1: x, x2: x, y1: top, y2: bottom }),
        ...lanes.map((y) => svg("circle", { class: "recovery-mark", cx: x, cy: y, r: 4 })),
    ];
}

function flagMark(x, y, epoch) {
    const width = 16 + 6 * (String(epoch).length - 1);
    return [
        svg("rect", { class: "flag", x: x - width / 2, y: y - 8, width, height: 16, rx: 4 }),
        svg("text", { class: "flag-number", x, y: y + 3.8 }, String(epoch)),
    ];
}

function stagedMark(x, y, step) {
    return svg("rect", { class: styled("staged", step), x: x - 3, y: y - 3, width: 6, height: 6 });
}

/** An arrow from one point to another, with room for the marks at both. */
function arrow(from, to, step, start = 7, room = 8) {
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const length = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / length, dy / length];
    const [x, y] = [to.x - ux * room, to.y - uy * room];
    const at = (back, side) => {
        const [left, top] = [x - ux * back - uy * side, y - uy * back + ux * side];
        return `${left.toFixed(1)} ${top.toFixed(1)}`;
    };
    const line = `M${from.x + ux * start} ${from.y + uy * start}L${at(4, 0)}`;
    const head = `M${at(0, 0)}L${at(7, 3)}L${at(7, -3)}z`;
    return [
        svg("path", { class: styled("arrow", step), d: line }),
        svg("path", { class: styled("arrow-head", step), d: head }),
    ];
}

/** The pattern behind what a recovery undoes. */
function hatch() {
    const line = svg("path", { class: "hatch-line", d: "M0 6L6 0M-1 1L1-1M5 7L7 5" });
    const tile = { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse" };
    return svg("pattern", tile, line);
}

/** One entry for each kind of mark. */
function drawLegend(list) {
    const sample = { epoch: 1, fate: "kept" };
    const undone = { epoch: 1, fate: "discarded" };
    const group = (step, marks) => svg("g", { class: styled("", step) }, ...marks);
    const entries = [
        [group(sample, eventMark(15, 15)), "event"],
        [group(sample, barrierMark(15, 9.5, 1)), "barrier of an epoch, with its snapshot"],
        [group(undone, eventMark(15, 15)), "undone by a recovery"],
        [group(sample, failMark(15, 15)), "failure"],
        [group(sample, recoverMark(15, 2, 28, [15])), "recovery of all tasks"],
        [group(sample, [stagedMark(15, 15, sample)]), "output, not yet visible"],
        [group(sample, flagMark(15, 15, 1)), "commit: output up to this epoch becomes visible"],
        [svg("path", { class: "link is-same", d: "M2 15H28" }), "an observer sees the same"],
    ];
    const fates = new Set(steps.map((step) => step.fate));
    const open = { epoch: 1, fate: "open" };
    const hollow = (words) => entries.splice(3, 0, [group(open, eventMark(15, 15)), words]);
    if (fates.has("open")) hollow("not committed at the end");
    if (fates.has("unchecked")) hollow("not checked");
    const icon = { viewBox: "0 -1 30 34", "aria-hidden": "true" };
    list.replaceChildren(
        ...entries.map(([mark, words]) => html("li", "", svg("svg", icon, mark), words)),
    );
}
