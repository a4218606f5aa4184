/** Admin: how the service is, who may see what, what somebody else sees, and which settings are in force. */
import { useMessages } from "../../messages";
import { Tabs } from "../../parts/Tabs";
import { usePlace } from "../../route";
import "../../style/operate.css";
import { AccessTab } from "./Access";
import { PeopleTab } from "./People";
import { SettingsTab } from "./Settings";
import { StatusTab } from "./Status";
import { ViewAsTab } from "./ViewAs";

const TABS = {
  status: StatusTab,
  people: PeopleTab,
  access: AccessTab,
  "view-as": ViewAsTab,
  settings: SettingsTab,
} as const;
type Name = keyof typeof TABS;

const NAMES = Object.keys(TABS) as Name[];

export default function OperatePage() {
  const text = useMessages("admin");
  const { id } = usePlace();
  const name = NAMES.find((each) => each === id) ?? "status";
  const Tab = TABS[name];
  return (
    <div className="stack operate-page">
      <h1>{text.title}</h1>
      <Tabs
        label={text.tabsLabel}
        page="admin"
        tabs={NAMES.map((each) => [each, text.tabs[each]])}
        current={name}
      />
      <Tab />
    </div>
  );
}
