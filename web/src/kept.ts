/**
 * What the console keeps of a person in this tab: the one place for it. A person is an issuer and a user, and people
 * who have not signed in are a person of their own.
 *
 * What is in memory (uploads, the last listing, actions that wait for "Undo") lives as long as the page: each change of
 * person loads it again.
 */

const PREFIX = "ragstack.kept.";

/** How often everything was forgotten since the page was loaded. */
let forgotten = 0;

export class Kept {
  /** Identifies the person to the browser's history, for as long as their things are kept. */
  readonly id: string;
  private readonly since = forgotten;

  private constructor(
    private readonly person: string,
    private readonly storage: Storage,
  ) {
    this.id = this.read("id", newId());
    this.write("id", this.id);
  }

  /** Open what a person left here, and remove what anybody else left. Without a user: nobody has signed in. */
  static open(issuer: string | null, user: string | null, storage: Storage = sessionStorage): Kept {
    const person = JSON.stringify([issuer, user]);
    for (const key of kept(storage)) if (!key.startsWith(`${PREFIX}${person}.`)) storage.removeItem(key);
    return new Kept(person, storage);
  }

  /** Remove everything that anybody left. What this page still writes later, such as a late answer, is not kept. */
  static forget(storage: Storage = sessionStorage): void {
    forgotten += 1;
    for (const key of kept(storage)) storage.removeItem(key);
  }

  read<T>(name: string, otherwise: T): T {
    try {
      const text = this.storage.getItem(this.key(name));
      return text === null ? otherwise : (JSON.parse(text) as T);
    } catch {
      return otherwise;
    }
  }

  write(name: string, value: unknown): void {
    if (this.since !== forgotten) return;
    try {
      this.storage.setItem(this.key(name), JSON.stringify(value));
    } catch {
      // The storage is full: it is lost with a reload, and nothing else.
    }
  }

  remove(name: string): void {
    this.storage.removeItem(this.key(name));
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

/** An identifier that nobody can guess. `crypto.randomUUID` needs HTTPS. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint32Array(3))].map((number) => number.toString(36)).join("");
}

/** A UUID of random bits. */
export function newUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40; // version 4
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80; // variant of RFC 9562
  const text = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return text.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
