// What is selected and how it is shown; every column follows it.

const MODES = [['normal', 'Normal'], ['focused', 'Focused'], ['prompts', 'Prompts']];
const SIDES = [['unified', 'Unified'], ['split', 'Side by side']];
const TABS = [['talk', 'Talk'], ['files', 'Files'], ['reasons', 'Reasons']];

// The browser may keep nothing for a file, and says so by an error.
function kept(name) {
  try {
    return localStorage.getItem(`gitcp.${name}`);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`gitcp.${name}`, value);
  } catch {
    // It is asked for again the next time.
  }
}

class State {
  constructor() {
    const choose = (at, how) => this.select(at, how);
    this.at = -1;
    this.axis = new Axis(find('axis'), choose);
    this.talk = new Talk(find('talk'), choose);
    this.files = new Files(find('files'));
    this.reasons = new Reasons(find('reasons'), choose);
    this.search = new Search(this);
    this.choices('mode', MODES, (mode) => this.setMode(mode));
    this.choices('sides', SIDES, (sides) => this.setSides(sides));
    this.choices('tabs', TABS, (tab) => this.setTab(tab));
    this.setMode(kept('mode') || 'normal');
    this.setSides(kept('sides') || 'unified');
    this.setTab('talk');
    this.setTheme(kept('theme'));
    find('theme').addEventListener('click', () => this.turnTheme());
    addEventListener('hashchange', () => this.follow());
  }

  show(page) {
    this.page = page;
    document.body.dataset.talk = page.talk ? 'yes' : 'no';
    if (!page.talk) this.setMode('prompts');
    const turns = page.rows.filter((row) => row.kind === 'turn').length;
    const facts = [
      page.project || null,
      `${page.rows.length === turns ? '' : `${page.rows.length} rows, `}${turns} ${turns === 1 ? 'turn' : 'turns'}`,
      page.lanes.length > 1 ? `${page.lanes.length} branches` : null,
      page.redacted ? `${page.redacted} redacted` : null,
    ];
    refill(find('name'), page.session);
    refill(find('facts'), facts.filter(Boolean).join(' · '));
    refill(find('notes'), ...(page.notes || []).map((note) => el('p', '', note)));
    find('notes').hidden = !(page.notes || []).length;
    for (const column of [this.axis, this.talk, this.files, this.reasons]) column.draw(page);
    if (!page.rows.length) refill(find('talk'), el('p', 'quiet only', 'Nothing was saved in this session.'));
  }

  select(at, { scroll = true, column = null, paths = null } = {}) {
    if (!this.page.rows.length) return;
    at = Math.max(0, Math.min(this.page.rows.length - 1, at));
    if (at !== this.at) {
      this.at = at;
      this.talk.select(at, scroll);
      this.axis.select(at);
      this.files.select(at);
      this.reasons.select(at);
      this.hash();
    } else if (scroll) {
      this.talk.select(at, true);
    }
    if (paths) this.files.point(paths);
    if (paths || column) this.setTab(paths ? 'files' : column);
    this.search.highlight();
  }

  // --- the address: which turn, and what is searched for ---

  hash() {
    if (this.at < 0) return;
    const parts = [encodeURIComponent(argumentOf(this.page.rows[this.at]))];
    if (this.search.words && this.search.hits) parts.push(`q=${encodeURIComponent(this.search.words)}`);
    const wanted = `#${parts.join('&')}`;
    if (location.hash !== wanted) history.replaceState(null, '', wanted);
  }

  follow() {
    const [name, ...rest] = location.hash.slice(1).split('&');
    const decoded = plain(name).replace(/^#/, '');
    const words = rest.find((part) => part.startsWith('q='));
    if (words && !this.search.words) {
      this.search.input.value = plain(words.slice(2));
      this.search.run();
    }
    const at = this.page.rows.findIndex((row) => argumentOf(row) === decoded || row.id === decoded);
    if (at >= 0) this.select(at);
    return at >= 0;
  }

  // --- how it is shown ---

  choices(id, all, act) {
    refill(find(id), ...all.map(([value, text]) => {
      const made = button('', '', () => act(value), text);
      made.dataset.value = value;
      return made;
    }));
  }

  press(id, value) {
    for (const one of find(id).children) one.setAttribute('aria-pressed', String(one.dataset.value === value));
  }

  setMode(mode) {
    if (!MODES.some(([value]) => value === mode)) mode = 'normal';
    this.talk.setMode(mode);
    this.press('mode', mode);
    keep('mode', mode);
    if (this.at >= 0) this.talk.select(this.at, true);
  }

  setSides(sides) {
    if (!SIDES.some(([value]) => value === sides)) sides = 'unified';
    this.files.setSides(sides);
    this.press('sides', sides);
    keep('sides', sides);
  }

  setTab(tab) {
    document.body.dataset.tab = tab;
    this.press('tabs', tab);
  }

  setTheme(theme) {
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  }

  turnTheme() {
    const dark = getComputedStyle(document.documentElement).getPropertyValue('--dark').trim() === '1';
    const theme = dark ? 'light' : 'dark';
    this.setTheme(theme);
    keep('theme', theme);
  }
}

function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
