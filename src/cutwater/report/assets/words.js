// What is said about a step.

const PAPER_NAMES = { event: "I-Event", barrier: "I-Border", fail: "F-Fail", recover: "F-Recover" };

function plural(number, word) {
    return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

/** Where a recovery to an epoch goes back to. */
function snapshotWords(epoch) {
    return epoch ? `epoch ${epoch}` : "the start";
}

function sentence(step) {
    const name = step.task === null ? "" : tasks[step.task].name;
    switch (step.rule) {
        case "event":
            return `${name} processes an event of epoch ${step.epoch}`;
        case "barrier":
            return `${name} reaches the barrier of epoch ${step.epoch} and takes a snapshot`;
        case "fail":
            return `${name} fails and loses its state`;
        default:
            return step.epoch
                ? `all tasks go back to the snapshots of epoch ${step.epoch}`
                : "all tasks go back to the start";
    }
}

function fateWords(step, index) {
    const { epoch, stop } = generations[step.generation];
    if (index === timeline.verdict.step) return "not explained: the check stops here";
    switch (step.fate) {
        case "kept":
            return `kept: step ${step.place} of the failure-free run${commitWords(step)}`;
        case "discarded":
            return `undone by the recovery at step ${stop - 1}, to ${snapshotWords(epoch)}`;
        case "unchecked":
            return `not checked: the check stopped at step ${timeline.verdict.step}`;
        case "open":
            return "epoch not committed when the run ends";
        default:
            return "not in the failure-free run";
    }
}

function commitWords(step) {
    if (step.commit === null) return "";
    return `; commits epoch ${step.commit}, whose output is visible from here on`;
}
