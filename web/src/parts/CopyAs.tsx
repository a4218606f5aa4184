import { useApp } from "../context";
import { useMessages } from "../messages";
import type { Settings } from "../settings";
import { CopyButton } from "./CopyButton";
import { asCommand, asCurl, asPython, type Kind } from "./commands";
import { Icon } from "./Icon";
import { Menu } from "./Menu";

/** Copies a question or a search for other programs. */
export function CopyAs({ kind, settings }: { kind: Kind; settings: Settings }) {
  const { session } = useApp();
  const text = useMessages("parts");
  return (
    <Menu
      kind="quiet"
      button={
        <>
          <Icon name="code" size={16} /> <span className="named">{text.copyAs}</span>
        </>
      }
    >
      <CopyButton
        label={text.copyKinds.curl}
        text={() => asCurl(kind, settings, location.origin, session.settings.auth)}
      />
      <CopyButton label={text.copyKinds.python} text={() => asPython(kind, settings)} />
      <CopyButton label={text.copyKinds.command} text={() => asCommand(kind, settings)} />
    </Menu>
  );
}
