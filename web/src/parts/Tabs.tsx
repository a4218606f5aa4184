/** The parts of a page, each with an address of its own. */
import { useEffect, useRef } from "react";
import { address } from "../route";

interface Props {
  label: string;
  page: string;
  tabs: readonly (readonly [id: string, title: string])[];
  current: string;
  params?: URLSearchParams;
}

export function Tabs({ label, page, tabs, current, params }: Props) {
  const nav = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another one may be outside a narrow window
  useEffect(() => {
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current]);
  return (
    <nav ref={nav} className="tabs" aria-label={label}>
      {tabs.map(([id, title]) => (
        <a key={id} href={address(page, params, id)} aria-current={id === current ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
