// What is on each stream, and how far it was read.

function streamsPart(cursor) {
    return [html("h3", "", "streams"), ...streams.map((_, index) => streamRow(index, cursor))];
}

function streamRow(index, cursor) {
    const stream = streams[index];
    const common = valueAt(timeline.run.common, cursor + 1);
    const words = stream.is_observed ? `visible up to epoch ${common}` : "";
    const title = html("div", "stream-title",
        html("span", "", stream.name),
        html("span", "aside", words));
    return html("div", "stream", title, chipList(index, cursor, common));
}

/** The messages around where the slowest reader is. */
function chipList(index, cursor, common) {
    const content = contentAt(timeline.run, index, cursor + 1);
    const readers = readersOf(index, cursor + 1);
    const slowest = Math.min(content.length, ...readers.map((reader) => reader.position));
    const first = Math.max(0, Math.min(slowest - 4, content.length - MOST_CHIPS));
    const last = Math.min(content.length, first + MOST_CHIPS);
    const touched = touchedBy(cursor);
    const list = html("ul", "chips");
    if (first) list.append(html("li", "more", `${first} before`));
    for (let place = first; place <= last; place += 1) {
        const here = readers.filter((reader) => reader.position === place);
        list.append(...here.map(readerMark));
        if (place === last) break;
        const kind = chipKind(index, content[place], common, readers.length && place < slowest);
        list.append(chip(content[place], kind, touched.has(content[place])));
    }
    if (last < content.length) list.append(html("li", "more", `${content.length - last} more`));
    if (!content.length) list.append(html("li", "more", "empty"));
    return list;
}

function touchedBy(cursor) {
    if (cursor === START) return new Set();
    return new Set([...steps[cursor].consumed, ...steps[cursor].produced]);
}

function chipKind(stream, number, common, isRead) {
    if (streams[stream].is_observed) {
        return messages[number].epoch > common ? "is-pending" : "is-visible";
    }
    return isRead ? "is-read" : "";
}

function chip(number, kind, isTouched) {
    const { text, epoch, n } = messages[number];
    const isBarrier = text === null;
    const classes = `chip ${kind} ${isBarrier ? "is-barrier" : ""} ${isTouched ? "is-touched" : ""}`;
    const item = html("li", classes, isBarrier ? String(epoch) : text);
    item.title = `message ${n}, ${isBarrier ? "barrier of " : ""}epoch ${epoch}`;
    return item;
}

function readersOf(stream, configuration) {
    return tasks.flatMap(({ name, inputs }, task) => {
        const place = inputs.indexOf(stream);
        if (place < 0) return [];
        return [{ name, position: valueAt(timeline.run.reads[task][place], configuration) }];
    });
}

function readerMark({ name, position }) {
    const mark = html("li", "reader", name);
    mark.title = `${name} has read ${plural(position, "message")}`;
    return mark;
}
