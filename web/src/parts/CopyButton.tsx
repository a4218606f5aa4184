import { useState } from "react";
import { useMessages } from "../messages";
import { useAnnounce } from "./Announcer";
import { Icon, type IconName } from "./Icon";
import { Button } from "./shapes";

/** Copies a text. The button keeps its width when its label changes. */
interface Props {
  label: string;
  icon?: IconName;
  text: () => string;
}

export function CopyButton({ label, icon, text }: Props) {
  const [state, setState] = useState<"ready" | "copied" | "failed">("ready");
  const announce = useAnnounce();
  const messages = useMessages("parts");
  const copy = async () => {
    const next = await navigator.clipboard.writeText(text()).then(
      () => "copied" as const,
      () => "failed" as const,
    );
    setState(next);
    announce(next === "copied" ? messages.copied : messages.copyFailed);
    setTimeout(() => setState("ready"), 1500);
  };
  return (
    <Button kind="quiet" onClick={copy}>
      {icon && (
        <Icon name={{ ready: icon, copied: "check" as const, failed: "error" as const }[state]} size={16} />
      )}
      {label} {!icon && <span aria-hidden="true">{{ ready: " ", copied: "✓", failed: "✗" }[state]}</span>}
    </Button>
  );
}
