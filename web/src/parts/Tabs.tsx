/** The parts of a page, each with an address of its own. */
import { address } from "../route";

interface Props {
  label: string;
  page: string;
  tabs: readonly (readonly [id: string, title: string])[];
  current: string;
  params?: URLSearchParams;
}

export function Tabs({ label, page, tabs, current, params }: Props) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map(([id, title]) => (
        <a key={id} href={address(page, params, id)} aria-current={id === current ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
