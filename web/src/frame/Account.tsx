/** Who uses the console, what they may do, and how it looks to them. */
import { useState } from "react";
import type { Me } from "../api/types";
import { useApp } from "../context";
import {
  chooseLanguage,
  LANGUAGES,
  type Language,
  type Messages,
  useLanguage,
  useMessages,
} from "../messages";
import { Segments } from "../parts/fields";
import { Icon } from "../parts/Icon";
import { Menu } from "../parts/Menu";
import { plain } from "../parts/names";
import { Button, Hidden } from "../parts/shapes";
import { waiting } from "../parts/Undo";
import type { Session } from "../session";
import { useStore } from "../store";
import { THEMES, theme } from "../theme";

interface Props {
  me: Me;
  session: Session;
  isSignedIn: boolean;
}

export function nameOf(me: Me): string {
  return plain(me.name.replace(/^user:/, ""));
}

export function Account({ me, session, isSignedIn }: Props) {
  const text = useMessages("frame");
  const { refreshMe } = useApp();
  const hasPeople = session.hasSignIn;
  const name = isSignedIn ? nameOf(me) : text.notSignedIn;
  const groups = groupsOf(me);
  return (
    <Menu
      className="account"
      onOpen={refreshMe}
      button={
        <>
          <span className="avatar" aria-hidden="true">
            {isSignedIn ? [...name][0]?.toUpperCase() : <Icon name="person" size={16} />}
          </span>
          <span className="who">
            <span dir="auto">
              <Hidden>{text.account}</Hidden> {name}
            </span>
            {isSignedIn && (
              <small dir="auto">
                {[groups, me.writable.length < 2 && writesOf(me, text)].filter(Boolean).join(" · ")}
              </small>
            )}
          </span>
        </>
      }
    >
      {hasPeople && (
        <div className="facts">
          {isSignedIn && <strong dir="auto">{name}</strong>}
          {isSignedIn && groups && <p dir="auto">{text.groups(groups)}</p>}
          <p>{text.rights(me.rights.join(", ") || text.noRights)}</p>
          <p dir="auto">
            {me.labels === null
              ? text.seesAll
              : me.labels.length > 0
                ? text.sees(me.labels.map(plain).join(", "))
                : text.seesNothing}
          </p>
          {me.writable.length > 1 && me.writable.every(({ prefix }) => prefix) ? (
            <details>
              <summary>{writesOf(me, text)}</summary>
              <ul>
                {me.writable.map(({ prefix }) => (
                  <li key={prefix} dir="auto">
                    {plain(prefix)}
                  </li>
                ))}
              </ul>
            </details>
          ) : (
            <p dir="auto">{writesOf(me, text)}</p>
          )}
        </div>
      )}
      <Preferences />
      {isSignedIn && hasPeople && <SignOutButton session={session} />}
    </Menu>
  );
}

function groupsOf(me: Me): string {
  return me.principals
    .filter((each) => each.startsWith("group:"))
    .map((each) => plain(each.slice("group:".length)))
    .join(", ");
}

function writesOf(me: Me, text: Messages["frame"]): string {
  const prefixes = me.writable.map(({ prefix }) => prefix);
  if (prefixes.length === 0) return "";
  if (prefixes.includes("")) return text.writesEverywhere;
  return prefixes.length === 1 ? text.writes(plain(prefixes[0] ?? "")) : text.writesSome(prefixes.length);
}

function Preferences() {
  const text = useMessages("frame");
  const language = useLanguage();
  const current = useStore(theme);
  return (
    <>
      <Segments
        label={text.theme}
        value={current}
        options={THEMES.map(
          (each) => [each, text.themes[each], <Icon key={each} name={each} size={16} />] as const,
        )}
        onChange={(next) => theme.choose(next)}
      />
      <Segments
        label={text.language}
        value={language}
        options={Object.entries(LANGUAGES) as [Language, string][]}
        onChange={(next) => void chooseLanguage(next)}
      />
    </>
  );
}

/** Signs out, and does what waits for "Undo" as the person who asked for it. */
export function SignOutButton({ session }: { session: Session }) {
  const text = useMessages("frame");
  const [isLeaving, setLeaving] = useState(false);
  const signOut = () => {
    setLeaving(true);
    void session.signOut(() => waiting.finish());
  };
  return (
    <Button disabled={isLeaving} onClick={signOut}>
      <Icon name="sign-out" size={16} /> {isLeaving ? text.signingOut : text.signOut}
    </Button>
  );
}
