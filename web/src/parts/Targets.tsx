import type { Settings } from "../settings";
import { Checkbox } from "./fields";
import { TestTarget } from "./TestTarget";

interface Props {
  a: Settings;
  /** Null unless two settings are compared. */
  b: Settings | null;
  onChange: (a: Settings, b: Settings | null) => void;
}

/** The Test Target box, or two of them side by side. */
export function Targets({ a, b, onChange }: Props) {
  return (
    <>
      <div className={b ? "targets" : ""}>
        <TestTarget
          legend={b ? "Settings A" : "Test Target"}
          settings={a}
          onChange={(next) => onChange(next, b)}
        />
        {b && <TestTarget legend="Settings B" settings={b} onChange={(next) => onChange(a, next)} />}
      </div>
      <Checkbox checked={b !== null} onChange={(isCompared) => onChange(a, isCompared ? { ...a } : null)}>
        Compare with other settings
      </Checkbox>
    </>
  );
}
