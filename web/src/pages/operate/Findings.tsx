/** What a reconciliation found, in words. */
import type { components } from "../../api/schema";
import { useMessages } from "../../messages";
import { findings } from "./service";

export function Findings({ report }: Pick<components["schemas"]["JobAnswer"], "report">) {
  const text = useMessages("admin").status;
  const found = findings(report);
  if (found.length === 0) return null;
  return (
    <>
      <h3>{text.found}</h3>
      <ul className="findings">
        {found.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
      <p className="small">{text.repairing}</p>
    </>
  );
}
