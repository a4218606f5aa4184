/** Light, dark, or as the system is: a choice of this browser, not of a person. */
import { Store } from "./store";

export const THEMES = ["light", "dark", "system"] as const;
export type Theme = (typeof THEMES)[number];

const CHOSEN = "ragstack.theme";

class ThemeChoice extends Store<Theme> {
  constructor() {
    const chosen = typeof localStorage === "undefined" ? null : localStorage.getItem(CHOSEN);
    super(THEMES.find((each) => each === chosen) ?? "system");
    if (typeof document !== "undefined") show(this.snapshot());
  }

  choose(next: Theme): void {
    if (next === "system") localStorage.removeItem(CHOSEN);
    else localStorage.setItem(CHOSEN, next);
    show(next);
    this.set(next);
  }
}

function show(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export const theme = new ThemeChoice();
