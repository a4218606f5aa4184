/** Operate: how the service is, who may see what, and what somebody else sees. */
import { Tabs } from "../../parts/Tabs";
import { usePlace } from "../../route";
import "../../style/operate.css";
import { AccessTab } from "./Access";
import { StatusTab } from "./Status";
import { ViewAsTab } from "./ViewAs";

const TABS = [
  ["status", "Status"],
  ["access", "Access"],
  ["view-as", "View as another user"],
] as const;

export default function OperatePage() {
  const { id } = usePlace();
  const tab = TABS.find(([name]) => name === id)?.[0] ?? "status";
  return (
    <div className="stack operate-page">
      <h1>Admin</h1>
      <Tabs label="What to operate" page="admin" tabs={TABS} current={tab} />
      {tab === "status" ? <StatusTab /> : tab === "access" ? <AccessTab /> : <ViewAsTab />}
    </div>
  );
}
