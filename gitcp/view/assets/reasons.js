// The third column: what the selected turn recorded, then all that came before it.

const KIND_NAMES = {
  decision: 'decided', tried: 'dead end', next: 'next', fact: 'fact', note: 'note', bug: 'bug',
};
const EARLIER = 200;

class Reasons {
  constructor(place, choose) {
    this.place = place;
    this.choose = choose;
  }

  draw(page) {
    this.page = page;
  }

  // The rows that led to one: along its branch, and below where that was forked.
  led(at) {
    const made = [];
    for (let row = at; row !== undefined && row !== null; row = this.page.rows[row].up) made.push(row);
    return made;
  }

  select(at) {
    const rows = this.page.rows;
    if (!this.page.reasons) {
      refill(this.place, el('p', 'quiet only', 'This page was made without reasons.'));
      return;
    }
    const own = rows[at].reasons || [];
    const before = this.led(at).slice(1).flatMap((place) => (rows[place].reasons || []).map((one) => [one, place]).reverse());
    // A restore brings reasons back: each is listed once, with the turn that recorded it.
    const once = new Map(before.map(([one, place]) => [JSON.stringify(one), [one, place]]));
    own.forEach((one) => once.delete(JSON.stringify(one)));
    const earlier = [...once.values()];
    refill(this.place,
      el('h2', '', 'Reasons of this turn'),
      ...(own.length ? own.map((one) => this.entry(one, at)) : [el('p', 'quiet', 'None were recorded.')]),
      earlier.length ? el('h2', '', 'Before it') : null,
      ...earlier.slice(0, EARLIER).map(([one, place]) => this.entry(one, place)),
      earlier.length > EARLIER ? el('p', 'quiet', `${earlier.length - EARLIER} older ones`) : null);
    this.place.scrollTop = 0;
  }

  entry(one, at) {
    const row = this.page.rows[at];
    const made = el('div', `entry ${one.kind in KIND_NAMES ? one.kind : 'other'}`,
      el('div', 'top', el('span', 'kind', KIND_NAMES[one.kind] || one.kind),
        button('number', 'Show that turn', () => this.choose(at), nameOf(row)),
        row.foreign ? el('span', 'badge warn', `from ${row.foreign}`) : null),
      el('p', 'said', ...long(one.text)),
      one.why ? el('p', 'because', ...long(one.why)) : null);
    if ((one.paths || []).length) {
      made.append(button('paths', 'Show these files', () => this.choose(at, { paths: one.paths }), el('bdi', '', oneLine(one.paths.join(' ')))));
    }
    for (const part of made.querySelectorAll('p')) part.dir = 'auto';
    return made;
  }
}
