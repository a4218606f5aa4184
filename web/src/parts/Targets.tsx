import type { ReactNode } from "react";
import { useMessages } from "../messages";
import type { Settings } from "../settings";
import { Checkbox } from "./fields";
import { TestTarget } from "./TestTarget";

interface Props {
  a: Settings;
  /** Null unless two settings are compared. */
  b: Settings | null;
  onChange: (a: Settings, b: Settings | null) => void;
  /** What stands next to the choice to compare. */
  children?: ReactNode;
}

/** The Test Target box, or two of them side by side. */
export function Targets({ a, b, onChange, children }: Props) {
  const text = useMessages("parts");
  return (
    <>
      <div className={b ? "targets" : ""}>
        <TestTarget
          legend={b ? text.settingsA : text.testTarget}
          settings={a}
          onChange={(next) => onChange(next, b)}
        />
        {b && <TestTarget legend={text.settingsB} settings={b} onChange={(next) => onChange(a, next)} />}
      </div>
      <div className="row">
        <Checkbox checked={b !== null} onChange={(isCompared) => onChange(a, isCompared ? { ...a } : null)}>
          {text.compare}
        </Checkbox>
        {children}
      </div>
    </>
  );
}
