import type { ReactNode } from "react";
import type { InferredFilter } from "../api/types";
import { useMessages } from "../messages";
import type { Settings } from "../settings";
import { SettingsRow } from "./SettingsRow";
import { Button } from "./shapes";

interface Props {
  a: Settings;
  /** Null unless two settings are compared. */
  b: Settings | null;
  onChange: (a: Settings, b: Settings | null) => void;
  inferred?: readonly [a: InferredFilter | null | undefined, b: InferredFilter | null | undefined];
  /** What stands at the end of the first row. */
  children?: ReactNode;
}

/** The row of settings, or two of them to compare. */
export function SettingsRows({ a, b, onChange, inferred, children }: Props) {
  const text = useMessages("parts");
  return (
    <div>
      <SettingsRow
        settings={a}
        onChange={(next) => onChange(next, b)}
        legend={b ? text.settingsOf("A") : undefined}
        inferred={inferred?.[0]}
      >
        <Button kind="quiet" aria-pressed={b !== null} onClick={() => onChange(a, b ? null : { ...a })}>
          {b ? text.stopComparing : text.compare}
        </Button>
        {children}
      </SettingsRow>
      {b && (
        <SettingsRow
          settings={b}
          onChange={(next) => onChange(a, next)}
          legend={text.settingsOf("B")}
          inferred={inferred?.[1]}
        />
      )}
    </div>
  );
}
