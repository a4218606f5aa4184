/**
 * What the console keeps of a person in the browser: the one place for it. A person is an issuer and a user, and people
 * who have not signed in are a person of their own.
 *
 * What is in memory (uploads, the last listing, actions that wait for "Undo") lives as long as the page: each change of
 * person loads it again.
 */

const PREFIX = "ragstack.kept.";

/** The tab's storage ends with the tab; the browser's stays. */
export type Place = "tab" | "browser";

export type Storages = Record<Place, Storage>;

export class Kept {
  private constructor(
    private readonly person: string,
    private readonly storages: Storages,
    /** Whether somebody else was signed in in this tab before. */
    readonly isAnother: boolean,
  ) {}

  /** Open what a person left here, and remove what anybody else left. Without a user: nobody has signed in. */
  static open(
    issuer: string | null,
    user: string | null,
    storages: Storages = { tab: sessionStorage, browser: localStorage },
  ): Kept {
    const person = JSON.stringify([issuer, user]);
    const own = `${PREFIX}${person}.`;
    const nobody = `${PREFIX}${JSON.stringify([issuer, null])}.`;
    let isAnother = false;
    for (const [place, storage] of Object.entries(storages)) {
      const others = kept(storage).filter((key) => !key.startsWith(own));
      if (place === "tab" && others.some((key) => !key.startsWith(nobody))) isAnother = true;
      for (const key of others) storage.removeItem(key);
    }
    const opened = new Kept(person, storages, isAnother);
    opened.write("opened", true);
    return opened;
  }

  /** Remove everything that anybody left. */
  static forget(storages: Storages = { tab: sessionStorage, browser: localStorage }): void {
    for (const storage of Object.values(storages)) for (const key of kept(storage)) storage.removeItem(key);
  }

  read<T>(name: string, otherwise: T, place: Place = "tab"): T {
    try {
      const text = this.storages[place].getItem(this.key(name));
      return text === null ? otherwise : (JSON.parse(text) as T);
    } catch {
      return otherwise;
    }
  }

  write(name: string, value: unknown, place: Place = "tab"): void {
    try {
      this.storages[place].setItem(this.key(name), JSON.stringify(value));
    } catch {
      // The storage is full: it is lost with a reload, and nothing else.
    }
  }

  remove(name: string): void {
    this.storages.tab.removeItem(this.key(name));
  }

  private key(name: string): string {
    return `${PREFIX}${this.person}.${name}`;
  }
}

function kept(storage: Storage): string[] {
  return Array.from({ length: storage.length }, (_, number) => storage.key(number) ?? "").filter((key) =>
    key.startsWith(PREFIX),
  );
}
