// The time axis: a bar for each turn, a lane for each branch. Time without turns is short.

const STEP = 9, WIDEST = 30, LANE = 26, HALF = 11, TOP = 16, LEFT = 8, BEND = 6;
const LATER = 45 * 60 * 1000;

class Axis {
  constructor(place, choose) {
    this.place = place;
    this.choose = choose;
    this.x = [];
  }

  draw(page) {
    this.page = page;
    const room = this.place.clientWidth - 160;
    this.step = Math.max(STEP, Math.min(WIDEST, Math.floor(room / (page.rows.length * 1.1 + 1))));
    this.thick = Math.min(11, Math.max(5, this.step * 0.45));
    this.x = this.places(page.rows);
    const width = (this.x.at(-1) || 0) + LEFT * 2 + this.step;
    const height = TOP + page.lanes.length * LANE + 2;
    const picture = svg('svg', { width, height, role: 'presentation' });
    this.days(picture, page.rows, height);
    this.links(picture, page.rows);
    this.bars = page.rows.map((row, at) => this.bar(picture, row, at));
    this.cursor = svg('rect', { class: 'cursor', y: 0, width: this.step, height, rx: 2 });
    picture.prepend(this.cursor);
    picture.addEventListener('click', (event) => this.pick(event));
    picture.addEventListener('mousemove', (event) => this.hover(event));
    refill(this.place, this.names(page), put(el('div', 'scroll'), picture));
    this.picture = picture;
    this.scroll = this.place.lastElementChild;
    this.dragged();
  }

  places(rows) {
    let x = LEFT + this.step / 2, before = null;
    return rows.map((row) => {
      const now = clock(row.at).ms;
      if (before !== null) x += this.step * (now - before > LATER ? 2 : 1);
      before = now;
      return x;
    });
  }

  names(page) {
    const made = el('div', 'lanes');
    for (const lane of page.lanes) {
      const other = lane.session !== page.session ? `${lane.session}/` : '';
      const label = put(el('bdi', 'lane'), `${other}${lane.branch}`);
      label.title = `${lane.session}/${lane.branch}`;
      made.append(label);
    }
    return made;
  }

  middle(row) {
    return TOP + row.lane * LANE + LANE / 2;
  }

  days(picture, rows, height) {
    let day = null, free = 0;
    rows.forEach((row, at) => {
      const now = clock(row.at);
      if (now.day === day) return;
      day = now.day;
      const x = this.x[at] - this.step / 2 + 0.5;
      picture.append(svg('line', { class: 'day', x1: x, x2: x, y1: 0, y2: height }));
      if (x < free) return;
      const label = svg('text', { x: x + 3, y: 11 });
      label.textContent = `${day} ${now.time}`;
      picture.append(label);
      free = x + 110;
    });
  }

  // From each row to the one it follows, all of a kind in one path.
  links(picture, rows) {
    let lines = '', forks = '';
    rows.forEach((row, at) => {
      if (row.up === undefined || row.up === null) return;
      const [x1, y1, x2, y2] = [this.x[row.up], this.middle(rows[row.up]), this.x[at], this.middle(row)];
      if (y1 === y2) lines += `M${x1} ${y1}H${x2}`;
      else forks += `M${x1} ${y1}C${x1 + BEND} ${y2} ${x1} ${y2} ${x1 + 2 * BEND} ${y2}H${x2}`;
    });
    if (lines) picture.append(svg('path', { class: 'line', d: lines }));
    if (forks) picture.append(svg('path', { class: 'line fork', d: forks }));
  }

  bar(picture, row, at) {
    const [x, y] = [this.x[at], this.middle(row)];
    const group = svg('g', { class: `bar by-${row.kind}` });
    const size = (count) => (count ? Math.min(HALF, 2.5 + Math.log2(1 + count) * 1.15) : 0);
    const lines = linesOf(row);
    const [added, modified, deleted] = changedIn(row);
    const up = size(lines ? lines[0] : 4 * (added + modified));
    const down = size(lines ? lines[1] : 4 * deleted);
    if (row.trigger === 'restore' || row.trigger === 'before-restore') {
      group.append(svg('path', { class: 'restore', d: `M${x - 3.5} ${y}L${x + 3} ${y - 4.5}V${y + 4.5}Z` }));
    } else if (!up && !down) {
      group.append(svg('circle', { class: 'none', cx: x, cy: y, r: added + modified + deleted ? 3 : 2 }));
    } else {
      if (up) group.append(svg('rect', { class: 'add', x: x - this.thick / 2, width: this.thick, y: y - up, height: up, rx: 1 }));
      if (down) group.append(svg('rect', { class: 'sub', x: x - this.thick / 2, width: this.thick, y, height: down, rx: 1 }));
    }
    if ((row.reasons || []).length) group.append(svg('circle', { class: 'reason', cx: x, cy: y + HALF + 1, r: 1.6 }));
    picture.append(group);
    return group;
  }

  nearest(event) {
    const box = this.picture.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = 0, distance = Infinity;
    this.page.rows.forEach((row, at) => {
      const away = Math.abs(this.x[at] - x) + Math.abs(this.middle(row) - y) / 8;
      if (away < distance) [best, distance] = [at, away];
    });
    return best;
  }

  pick(event) {
    this.choose(this.nearest(event));
  }

  hover(event) {
    const row = this.page.rows[this.nearest(event)];
    const title = `${nameOf(row)}  ${titleOf(row)}`;
    if (this.place.title !== title) this.place.title = title;
    if (event.buttons === 1) this.pick(event);
  }

  // A wheel that turns up and down moves along the time.
  dragged() {
    this.scroll.addEventListener('wheel', (event) => {
      if (event.deltaX || !event.deltaY || this.scroll.scrollWidth <= this.scroll.clientWidth) return;
      this.scroll.scrollLeft += event.deltaY;
      event.preventDefault();
    }, { passive: false });
  }

  select(at) {
    const x = this.x[at];
    this.cursor.setAttribute('x', x - this.step / 2);
    const { scrollLeft, clientWidth } = this.scroll;
    if (x < scrollLeft + 40 || x > scrollLeft + clientWidth - 40) this.scroll.scrollLeft = x - clientWidth / 2;
  }

  // Rows with a hit stay as they are, the others go back; null for no search.
  mark(hits) {
    this.bars.forEach((bar, at) => bar.classList.toggle('dim', hits !== null && !hits.has(at)));
  }
}
