// The keyboard, and the list of its keys.

const KEYS = [
  ['j k', 'next turn, turn before'],
  ['J K', 'the same among turns that changed files'],
  ['g G', 'first turn, last turn'],
  ['] [', 'next file, file before'],
  ['/', 'search; Enter and Shift+Enter step through what was found'],
  ['n N', 'next turn with a hit, the one before'],
  ['m', 'Normal, Focused, Prompts'],
  ['d', 'unified, side by side'],
  ['1 2 3', 'to the talk, the files, the reasons'],
  ['c', 'copy the command that goes back to this turn'],
  ['y', 'copy the link to this turn'],
  ['t', 'light, dark'],
  ['?', 'this list'],
];

function after(all, value) {
  const at = all.findIndex(([one]) => one === value);
  return all[(at + 1) % all.length][0];
}

class Keys {
  constructor(state) {
    this.state = state;
    this.help = find('help');
    find('keys').addEventListener('click', () => this.open());
    document.addEventListener('keydown', (event) => this.press(event));
    const table = el('table', '', ...KEYS.map(([keys, text]) => el('tr', '', el('th', '', ...keys.split(' ').map((key) => el('kbd', '', key))), el('td', '', text))));
    refill(this.help, el('h2', '', 'Keys'), table, button('', '', () => this.help.close(), 'Close'));
    this.help.addEventListener('click', (event) => { if (event.target === this.help) this.help.close(); });
  }

  open() {
    if (!this.help.open) this.help.showModal();
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return;
    if (event.target.closest('input, textarea')) return;
    const act = this.actions()[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  actions() {
    const { state } = this;
    const rows = state.page.rows;
    const go = (by) => state.select(state.at + by);
    const goChanged = (by) => {
      for (let at = state.at + by; at >= 0 && at < rows.length; at += by) {
        if (changedIn(rows[at]).some(Boolean)) return state.select(at);
      }
    };
    const focus = (tab) => {
      state.setTab(tab);
      find(tab).focus();
    };
    return {
      j: () => go(1), k: () => go(-1), ArrowRight: () => go(1), ArrowLeft: () => go(-1),
      J: () => goChanged(1), K: () => goChanged(-1),
      g: () => state.select(0), G: () => state.select(rows.length - 1),
      ']': () => state.files.move(1), '[': () => state.files.move(-1),
      '/': () => { state.search.input.focus(); state.search.input.select(); },
      n: () => state.search.step(1), N: () => state.search.step(-1),
      m: () => state.setMode(after(MODES, state.talk.mode)),
      d: () => state.setSides(after(SIDES, state.files.sides)),
      1: () => focus('talk'), 2: () => focus('files'), 3: () => focus('reasons'),
      c: () => find('files').querySelectorAll('.command')[1]?.click(),
      y: () => copied(location.href, find('name')),
      t: () => state.turnTheme(),
      '?': () => this.open(),
      Escape: () => state.search.clear(),
    };
  }
}
