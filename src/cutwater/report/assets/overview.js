// What is above everything: what the run is, its verdict, and all of it at a glance.

const BINS = 300;
const MOST_MARKS = 80;

function drawHead() {
    const counts = [
        plural(steps.length, "step"),
        plural(indicesOf("fail").length, "failure"),
        plural(generations.length, "generation"),
        plural(commits.length, "commit"),
        `${plural(kept.length, "step")} in the failure-free run`,
    ].join(" · ");
    const { note, verdict } = timeline;
    document.getElementById("flow").textContent = timeline.flow;
    document.getElementById("counts").textContent = note ? `${note} · ${counts}` : counts;
    const said = document.getElementById("verdict");
    said.textContent = verdict.words;
    if (verdict.holds) return;
    const link = html("a", "", "show it");
    link.href = `#step=${verdict.step}`;
    said.classList.add("is-refused");
    said.append(" ", link);
}

function indicesOf(rule) {
    return steps.flatMap((step, index) => (step.rule === rule ? [index] : []));
}

/** Failures, recoveries and commits above the scrubber; of too many only the failures, binned. */
function drawOverview(root) {
    const width = Math.max(root.clientWidth, 100) - 16;
    const x = (index) => 8 + (width * (index + 1)) / Math.max(steps.length, 1);
    const tick = (name, y1, y2) => (index) =>
        svg("line", { class: name, x1: x(index), x2: x(index), y1, y2 });
    const dot = (index) => svg("circle", { class: "flag", cx: x(index), cy: 10, r: 2.6 });
    const cross = (index) =>
        svg("path", { class: "cross", d: `M${x(index) - 2.5} 7.5l5 5m0-5l-5 5` });
    const few = (indices) => (indices.length > MOST_MARKS ? [] : indices);
    const failures = indicesOf("fail");
    const isMany = failures.length > MOST_MARKS;
    root.replaceChildren(
        ...few(indicesOf("recover")).map(tick("recovery-line", 6, 15)),
        ...few(commits.map((commit) => commit.step)).map(dot),
        ...(isMany ? binned(failures).map(tick("failure-tick", 7, 13)) : failures.map(cross)),
    );
}

/** At most one index in each of the bins. */
function binned(indices) {
    const bin = (index) => Math.floor((index * BINS) / steps.length);
    return [...new Map(indices.map((index) => [bin(index), index])).values()];
}
