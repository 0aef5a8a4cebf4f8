// A page that a server shows asks it whether the session went on. A file asks for nothing.

const PAUSE = 2000;

class Live {
  // `known` names the state that the page was made of.
  constructor(state, known) {
    this.state = state;
    this.known = known;
  }

  start() {
    document.body.dataset.live = 'on';
    this.look();
  }

  async look() {
    try {
      const told = await fetch('state', { cache: 'no-store' });
      if (told.ok) {
        const now = await told.text();
        if (now !== this.known) await this.renew();
        this.known = now;
      }
      document.body.dataset.live = told.ok ? 'on' : 'off';
    } catch {
      document.body.dataset.live = 'off';
    }
    setTimeout(() => this.look(), PAUSE);
  }

  // Shows what the session is now; who looked at its end still does.
  async renew() {
    const answer = await fetch('data', { cache: 'no-store' });
    if (!answer.ok) return;
    const page = await unpacked(await answer.arrayBuffer());
    const { state } = this;
    const row = state.page.rows[state.at];
    const atEnd = state.at === state.page.rows.length - 1;
    state.at = -1;
    state.show(page);
    const same = row ? page.rows.findIndex((one) => one.id === row.id && one.kind === row.kind) : -1;
    state.select(atEnd || same < 0 ? page.rows.length - 1 : same);
    if (state.search.words) state.search.run();
  }
}
