// Searches every text in the page while one types.

const SHOWN = 60, AROUND = 22;

class Search {
  constructor(state) {
    this.state = state;
    this.input = find('query');
    this.list = find('hits');
    this.count = find('found');
    this.hits = null;
    this.input.addEventListener('input', () => {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.run(), 120);
    });
    this.input.addEventListener('keydown', (event) => this.key(event));
    this.input.addEventListener('focus', () => { if (this.hits) this.list.hidden = false; });
    document.addEventListener('click', (event) => {
      if (!event.target.closest('#find')) this.list.hidden = true;
    });
  }

  key(event) {
    if (event.key === 'Enter') {
      event.preventDefault();
      if (this.pending()) this.run();
      this.step(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      event.stopPropagation();
      if (this.list.hidden) this.clear();
      this.list.hidden = true;
      this.input.blur();
    }
  }

  pending() {
    return this.input.value.trim().toLowerCase() !== (this.words || '');
  }

  clear() {
    this.input.value = '';
    this.run();
  }

  run() {
    this.words = this.input.value.trim().toLowerCase();
    if (this.words.length < 2) {
      this.hits = null;
      this.count.textContent = '';
      this.list.hidden = true;
      this.state.axis.mark(null);
      this.highlight();
      this.state.hash();
      return;
    }
    this.hits = [];
    this.state.page.rows.forEach((row, at) => {
      for (const [where, texts] of Object.entries(textsOf(row))) {
        for (const text of texts) {
          const place = text.toLowerCase().indexOf(this.words);
          if (place >= 0) {
            this.hits.push({ at, where, text, place });
            break;
          }
        }
      }
    });
    const rows = new Set(this.hits.map((hit) => hit.at));
    this.count.textContent = rows.size === 1 ? '1 turn' : `${rows.size} turns`;
    this.state.axis.mark(rows);
    this.show();
    this.highlight();
    this.state.hash();
  }

  show() {
    refill(this.list, ...this.hits.slice(0, SHOWN).map((hit) => this.line(hit)));
    if (this.hits.length > SHOWN) this.list.append(el('p', 'quiet', `and ${this.hits.length - SHOWN} more; Enter steps through all`));
    if (!this.hits.length) this.list.append(el('p', 'quiet', 'Nothing found.'));
    this.list.hidden = document.activeElement !== this.input;
  }

  line(hit) {
    const row = this.state.page.rows[hit.at];
    const start = Math.max(0, hit.place - AROUND), end = hit.place + this.words.length;
    const clean = (text) => text.replaceAll(/\s+/g, ' ');
    return button('hit', '', () => this.go(hit), el('span', 'number', nameOf(row)), el('span', 'where', hit.where),
      el('bdi', '', start ? '…' : '', clean(hit.text.slice(start, hit.place)),
        el('mark', '', clean(hit.text.slice(hit.place, end))), clean(hit.text.slice(end, end + 4 * AROUND))));
  }

  go(hit) {
    this.list.hidden = true;
    this.state.select(hit.at, { column: hit.where });
  }

  // Selects the next turn with a hit, or the one before.
  step(by) {
    if (!this.hits || !this.hits.length) return;
    const rows = [...new Set(this.hits.map((hit) => hit.at))];
    const { at } = this.state;
    const next = by > 0 ? rows.find((row) => row > at) ?? rows[0] : rows.findLast((row) => row < at) ?? rows.at(-1);
    this.state.select(next);
  }

  // Marks the words in what is on the screen, without touching it.
  highlight() {
    if (!CSS.highlights) return;
    CSS.highlights.delete('found');
    if (!this.hits || !this.words) return;
    const found = new Highlight();
    const places = [this.state.talk.sections[this.state.at], find('files'), find('reasons')];
    for (const place of places.filter(Boolean)) {
      const walk = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
      while (walk.nextNode() && found.size < 2000) {
        const node = walk.currentNode;
        const text = node.data.toLowerCase();
        for (let at = text.indexOf(this.words); at >= 0 && found.size < 2000; at = text.indexOf(this.words, at + 1)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, Math.min(node.length, at + this.words.length));
          found.add(range);
        }
      }
    }
    CSS.highlights.set('found', found);
  }
}
