/**
 * The texts of the console in the chosen language. English is part of the page; another language loads when it is
 * chosen. Texts of the API stay as they are.
 */
import { Store, useStore } from "../store";
import { en } from "./en";

export type Messages = typeof en;
export type Area = keyof Messages;

/** Each language by its own name. */
export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;

const CHOSEN = "ragstack.language";

const LOADERS: Record<Language, () => Promise<Messages>> = {
  en: async () => en,
  de: async () => (await import("./de")).de,
};

interface Spoken {
  language: Language;
  /** With the region of the browser, for dates and numbers. */
  locale: string;
  messages: Messages;
}

class Speech extends Store<Spoken> {
  constructor() {
    super({ language: "en", locale: localeOf("en"), messages: en });
  }

  /** Use a language as soon as its texts are here; the last choice counts. */
  async use(language: Language): Promise<void> {
    const messages = await LOADERS[language]();
    if (language !== chosenLanguage()) return;
    if (typeof document !== "undefined") document.documentElement.lang = language;
    this.set({ language, locale: localeOf(language), messages });
  }
}

const speech = new Speech();

function preferred(): readonly string[] {
  return typeof navigator === "undefined" ? [] : (navigator.languages ?? []);
}

function isLanguage(name: string | null | undefined): name is Language {
  return name !== null && name !== undefined && name in LANGUAGES;
}

/** The first of the browser's languages that the console has; English if there is none. */
export function languageOf(languages: readonly string[]): Language {
  return languages.map((each) => each.split("-")[0]).find(isLanguage) ?? "en";
}

/** The chosen language with the region that the browser names for it. */
export function localeOf(language: Language, languages = preferred()): string {
  return languages.find((each) => each.split("-")[0] === language) ?? language;
}

function chosenLanguage(): Language {
  const chosen = typeof localStorage === "undefined" ? null : localStorage.getItem(CHOSEN);
  return isLanguage(chosen) ? chosen : languageOf(preferred());
}

/** Load the texts of the language that was chosen in this browser. */
export function openLanguage(): Promise<void> {
  return speech.use(chosenLanguage()).catch(() => undefined); // without them, English is still there
}

/** Choose a language in this browser, for everybody who uses it. */
export function chooseLanguage(language: Language): Promise<void> {
  localStorage.setItem(CHOSEN, language);
  return speech.use(language);
}

export function useLanguage(): Language {
  return useStore(speech).language;
}

/** The texts of an area, for components. */
export function useMessages<A extends Area>(area: A): Messages[A] {
  return useStore(speech).messages[area];
}

/** The texts of an area, for what is not a component but only called while one is drawn. */
export function messages<A extends Area>(area: A): Messages[A] {
  return speech.snapshot().messages[area];
}

/** The language tag for Intl. */
export function locale(): string {
  return speech.snapshot().locale;
}
