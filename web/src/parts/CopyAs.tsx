import { useApp } from "../context";
import type { Settings } from "../settings";
import { CopyButton } from "./CopyButton";
import { asCommand, asCurl, asPython, type Kind } from "./commands";

/** Copies a question or a search for other programs. */
export function CopyAs({ kind, settings }: { kind: Kind; settings: Settings }) {
  const { session } = useApp();
  return (
    <details className="copies">
      <summary>Copy as</summary>
      <div className="menu">
        <CopyButton
          label="curl"
          text={() => asCurl(kind, settings, location.origin, session.settings.auth)}
        />
        <CopyButton label="Python" text={() => asPython(kind, settings)} />
        <CopyButton label="Command line" text={() => asCommand(kind, settings)} />
      </div>
    </details>
  );
}
