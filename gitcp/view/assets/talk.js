// The first column: what was asked, said and called. What is not seen yet is not built; the
// prompts are, a few at a time once the page can be used, so that a browser finds them.

const AT_ONCE = 100;

class Talk {
  constructor(place, choose) {
    this.place = place;
    this.choose = choose;
    this.mode = 'normal';
    this.sections = [];
    this.quiet = 0;
    this.watch = new IntersectionObserver((seen) => this.build(seen), { root: place, rootMargin: '800px 0px' });
    place.addEventListener('scroll', () => this.scrolled(), { passive: true });
    // A window that changes its size scrolls, too, and that selects nothing.
    new ResizeObserver(() => this.hush()).observe(place);
  }

  draw(page) {
    this.page = page;
    this.watch.disconnect();
    this.sections = page.rows.map((row, at) => this.section(row, at));
    refill(this.place, ...this.sections);
    for (const section of this.sections) this.watch.observe(section);
    this.now = null;
    this.later(this.sections, 0);
  }

  // Begins the sections from a place on, unless another page is shown by then.
  later(sections, from) {
    setTimeout(() => {
      if (sections !== this.sections) return;
      for (const section of sections.slice(from, from + AT_ONCE)) this.begin(section);
      if (from + AT_ONCE < sections.length) this.later(sections, from + AT_ONCE);
    }, from ? 20 : 300);
  }

  setMode(mode) {
    this.mode = mode;
    this.place.dataset.mode = mode;
  }

  section(row, at) {
    const made = el('article', `turn ${row.kind}`);
    made.dataset.at = at;
    made.addEventListener('click', (event) => {
      if (event.target.closest('a, summary, button')) return;
      if (!String(getSelection())) this.choose(at);
    });
    return made;
  }

  // Adds what stands there until the whole is built.
  begin(section) {
    if (section.firstElementChild) return;
    const row = this.page.rows[section.dataset.at];
    const link = el('a', 'number', nameOf(row));
    link.href = `#${encodeURIComponent(argumentOf(row))}`;
    const now = clock(row.at);
    const time = el('time', '', now.time);
    time.title = `${now.day} ${now.time}`;
    const head = el('header', '', link, time, ...badges(row), counts(row));
    section.append(head, el('div', 'body'));
    this.preview(row, section.lastElementChild);
  }

  preview(row, body) {
    if (row.kind !== 'turn') {
      body.append(el('p', 'what', titleOf(row)));
    } else {
      const asked = el('div', 'prompt', titleOf(row));
      asked.dir = 'auto';
      body.append(asked);
    }
  }

  build(seen) {
    for (const one of seen) if (one.isIntersecting) this.fill(one.target);
  }

  fill(section) {
    if (section.dataset.full) return;
    section.dataset.full = 'yes';
    this.begin(section);
    this.watch.unobserve(section);
    const row = this.page.rows[section.dataset.at];
    const body = section.lastElementChild;
    const parts = [
      ...(row.foreign ? [el('p', 'foreign', `Recorded elsewhere (${row.foreign}): what was said there, not instructions.`)] : []),
      ...(row.notes || []).map((note) => el('p', 'trouble', note)),
      ...(row.talk || []).flatMap((spoken) => turn(spoken)),
    ];
    if ((row.talk || []).length) refill(body, ...parts);
    else body.prepend(...parts);
    if (row.kind === 'save' && row.note && row.note.includes('\n')) body.append(el('p', 'note', row.note));
  }

  select(at, scroll) {
    const section = this.sections[at];
    if (this.now && this.now !== section) this.now.classList.remove('now');
    this.now = section;
    if (section) section.classList.add('now');
    if (!section || !scroll) return;
    this.hush();
    for (const near of [at - 1, at, at + 1]) if (this.sections[near]) this.fill(this.sections[near]);
    this.reach(section, 8);
  }

  // What lies between gets its real height as it comes near: until then, try again.
  reach(section, tries) {
    section.scrollIntoView({ block: 'start' });
    const before = section.offsetTop;
    requestAnimationFrame(() => {
      if (!section.classList.contains('now') || !tries) return;
      this.hush();
      if (section.offsetTop !== before || tries > 6) this.reach(section, tries - 1);
    });
  }

  hush() {
    this.quiet = performance.now() + 400;
  }

  // Reading on selects what is read.
  scrolled() {
    if (performance.now() < this.quiet) return;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      const line = this.place.getBoundingClientRect();
      const y = line.top + Math.min(120, line.height / 4);
      const under = document.elementFromPoint(line.left + 30, y);
      const section = under && under.closest('.turn');
      if (section) this.choose(Number(section.dataset.at), { scroll: false });
    }, 90);
  }

  all() {
    for (const section of this.sections) this.fill(section);
  }
}

function badges(row) {
  const made = [];
  const badge = (kind, text, title) => {
    const one = el('span', `badge ${kind}`, text);
    if (title) one.title = title;
    made.push(one);
  };
  if (row.kind === 'turn' && row.agent) badge('agent', row.agent);
  if (row.kind === 'hand') badge('plain', 'by hand');
  if (row.kind === 'save' && row.trigger !== 'manual') badge('plain', row.trigger);
  if (row.label) badge('label', row.label, 'label');
  if (row.open) badge('warn', 'unfinished');
  if (row.back_to) badge('plain', `back to #${row.back_to}`);
  if (row.foreign) badge('warn', `from ${row.foreign}`, 'made elsewhere');
  for (const number of row.beside || []) badge('plain', `beside #${number}`);
  return made;
}

function counts(row) {
  const signs = ['+', '~', '−'];
  const kinds = ['add', 'mod', 'sub'];
  const made = el('span', 'counts');
  for (const [numbers, doubt] of [[changedIn(row), ''], [row.unsure || [0, 0, 0], '?']]) {
    numbers.forEach((number, at) => {
      if (number) made.append(el('span', kinds[at], `${signs[at]}${number}${doubt}`));
    });
  }
  made.title = 'files added, modified, deleted';
  return made;
}

function turn(spoken) {
  const made = [];
  if (spoken.prompt) {
    const asked = el('div', spoken.back ? 'prompt back' : 'prompt', ...long(spoken.prompt));
    asked.dir = 'auto';
    made.push(asked);
    if (spoken.back) made.push(el('p', 'quiet', 'taken back in the client'));
  }
  const steps = spoken.steps || [];
  const last = steps.findLastIndex((step) => !step.tool);
  steps.forEach((step, at) => {
    if (step.tool) made.push(tool(step));
    else {
      const text = el('div', at === last ? 'text answer' : 'text', ...prose(step.text));
      text.dir = 'auto';
      made.push(text);
    }
  });
  return made;
}

// One dense line for a call; what it returned is under it.
function tool(step) {
  const line = (step.arg || '').trim();
  const first = line.split('\n', 1)[0];
  const more = line.length > first.length;
  const summary = el('summary', '', el('b', '', step.tool), ' ', el('bdi', '', first.slice(0, 400)), more ? ' …' : null,
    step.failed ? el('span', 'failed', '✕ failed') : null);
  const made = el('details', 'tool', summary);
  if (!step.out && !more && first.length <= 400) {
    made.classList.add('bare');
    summary.addEventListener('click', (event) => event.preventDefault());
    return made;
  }
  made.addEventListener('toggle', () => {
    if (made.childElementCount > 1) return;
    if (more || first.length > 400) made.append(el('pre', 'call', ...long(line)));
    if (step.out) made.append(el('pre', '', ...long(step.out)));
    if (step.size > step.out.length) made.append(el('p', 'quiet', `${step.size.toLocaleString('en')} characters in all`));
  });
  return made;
}
