// Where we are: the cursor, its address, and how it is moved.

const PLAY_MS = 700;
const PARTS = [
    "diagram", "panel", "legend", "overview", "scrub", "position", "announced",
    "play", "first", "back", "forward", "last",
];
const parts = Object.fromEntries(PARTS.map((id) => [id, document.getElementById(id)]));
let cursor = START;
let timer = null;

function address(step) {
    return step === START ? "#start" : `#step=${step}`;
}

/** The step that the address names; without one the beginning, or where the verdict points. */
function addressed() {
    const found = /^#step=(\d+)$/.exec(location.hash);
    if (found) return bounded(Number(found[1]));
    return location.hash === "" ? bounded(timeline.verdict.step ?? START) : START;
}

function bounded(step) {
    return Math.min(Math.max(step, START), LAST);
}

function show() {
    const hadFocus = parts.diagram.contains(document.activeElement);
    drawDiagram(parts.diagram, cursor);
    drawPanel(parts.panel, cursor);
    const current = parts.diagram.querySelector('[aria-current="step"]');
    if (hadFocus) current?.focus({ preventScroll: true });
    sayPosition();
}

function sayPosition() {
    const isStart = cursor === START;
    parts.scrub.value = cursor;
    parts.scrub.setAttribute("aria-valuetext", isStart ? "start" : `step ${cursor}`);
    parts.position.textContent = isStart
        ? `start, ${plural(steps.length, "step")}`
        : `step ${cursor} / ${LAST}`;
    parts.announced.textContent = isStart
        ? "before the first step"
        : `step ${cursor}: ${sentence(steps[cursor])}`;
    parts.first.disabled = parts.back.disabled = isStart;
    parts.last.disabled = parts.forward.disabled = cursor === LAST;
}

/** Go to a step; a new entry in the browser's history, unless it is only passed through. */
function go(step, isPassing = false) {
    const to = bounded(step);
    if (to === cursor) return;
    cursor = to;
    show();
    const change = isPassing ? "replaceState" : "pushState";
    history[change](null, "", address(cursor));
}

function stop() {
    clearInterval(timer);
    timer = null;
    parts.play.setAttribute("aria-pressed", "false");
    parts.play.setAttribute("aria-label", "play");
}

function playOrPause() {
    if (timer !== null) return stop();
    if (cursor === LAST) go(START);
    parts.play.setAttribute("aria-pressed", "true");
    parts.play.setAttribute("aria-label", "pause");
    timer = setInterval(() => {
        go(cursor + 1, true);
        if (cursor === LAST) stop();
    }, PLAY_MS);
    return undefined;
}

function move(step, isPassing = false) {
    stop();
    go(step, isPassing);
}

const KEYS = {
    ArrowRight: (isHeld) => move(cursor + 1, isHeld), j: (isHeld) => move(cursor + 1, isHeld),
    ArrowLeft: (isHeld) => move(cursor - 1, isHeld), k: (isHeld) => move(cursor - 1, isHeld),
    Home: () => move(START), End: () => move(LAST), " ": playOrPause,
};

function onKey(event) {
    const act = KEYS[event.key];
    const isForButton = event.key === " " && event.target instanceof HTMLButtonElement;
    if (!act || event.ctrlKey || event.metaKey || event.altKey || isForButton) return;
    event.preventDefault();
    act(event.repeat);
}

/** The address was changed: by a link, by hand, or by going back. */
function onAddress() {
    if (addressed() === cursor) return;
    stop();
    cursor = addressed();
    show();
}

parts.scrub.max = LAST;
parts.first.addEventListener("click", () => move(START));
parts.back.addEventListener("click", () => move(cursor - 1));
parts.forward.addEventListener("click", () => move(cursor + 1));
parts.last.addEventListener("click", () => move(LAST));
parts.play.addEventListener("click", playOrPause);
parts.scrub.addEventListener("input", () => { stop(); go(Number(parts.scrub.value), true); });
document.addEventListener("keydown", onKey);
window.addEventListener("popstate", onAddress);
window.addEventListener("hashchange", onAddress);
window.addEventListener("resize", () => { drawOverview(parts.overview); show(); });

cursor = addressed();
drawHead();
drawLegend(parts.legend);
drawOverview(parts.overview);
show();
