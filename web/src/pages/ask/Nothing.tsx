/** Without an answer: what is closest, and what people can do next. */

import { useEffect, useRef, useState } from "react";
import type { AskResponse, ClosestDocument } from "../../api/types";
import { useAction, useApp } from "../../context";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { FindDocument } from "../../parts/FindDocument";
import { Icon } from "../../parts/Icon";
import { documentName, place, plain } from "../../parts/names";
import { OriginalDialog } from "../../parts/Original";
import { Button } from "../../parts/shapes";
import { sentence } from "../../parts/states";
import { address, go } from "../../route";
import { type Settings, toAsk, toParams } from "../../settings";
import { meaning, type Status } from "../../status";

interface Props {
  response: AskResponse;
  settings: Settings;
}

export function Nothing({ response, settings }: Props) {
  const text = useMessages("ask");
  const question = response.searched_question ?? response.question;
  const [isFinding, setFinding] = useState(false);
  const closest = response.closest_passages ? [] : (response.closest ?? []);
  return (
    <div className="nothing">
      {closest.length > 0 && <Closest documents={closest} />}
      <div className="row">
        <Button kind="primary" aria-expanded={isFinding} onClick={() => setFinding(!isFinding)}>
          <Icon name="missing" size={16} /> {text.findMissing}
        </Button>
        <a className="button" href={address("search", toParams({ ...settings, question }))}>
          <Icon name="search" size={16} /> {text.searchInstead}
        </a>
        <ReportGap settings={settings} />
      </div>
      {isFinding && <Find />}
    </div>
  );
}

/** What the question names and no searchable document has, and the documents that have it. */
export function Missing({ missing }: { missing: NonNullable<AskResponse["missing"]> }) {
  const text = useMessages("ask");
  return (
    <section className="box warning missing">
      <strong dir="auto">
        {text.missing(missing.attributes.map(({ key, value }) => plain(`${key} ${value}`)))}
      </strong>
      {missing.documents.map(({ id, name, status, reason }) => (
        <p key={id} dir="auto">
          <a href={address("documents", {}, id)}>
            <bdi>{plain(name)}</bdi>
          </a>
          {": "}
          {meaning(status as Status).label}
          {reason && <> · {sentence(plain(reason))}</>}
        </p>
      ))}
    </section>
  );
}

function Find() {
  const text = useMessages("ask");
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => place.current?.querySelector("input")?.focus(), []);
  return (
    <div ref={place} className="finding">
      <FindDocument label={text.findMissing} onChoose={({ id }) => go(address("documents", {}, id))} />
      <p className="small">{text.findMissingHint}</p>
    </div>
  );
}

function Closest({ documents }: { documents: readonly ClosestDocument[] }) {
  const text = useMessages("ask");
  const [open, setOpen] = useState<ClosestDocument | null>(null);
  return (
    <section className="closest" aria-label={text.closest}>
      <h3 className="small">{text.closest}</h3>
      <ol>
        {documents.map((document) => {
          const edition = String(document.version ?? document.date ?? "");
          const isNamed = documentName(document.source).includes(edition);
          const about = isNamed ? place(document) : edition;
          return (
            <li key={document.source}>
              <Button className="closest-card" onClick={() => setOpen(document)}>
                <strong>
                  <bdi>{plain([document.title, about].filter(Boolean).join(" · "))}</bdi>
                </strong>
                <span dir="auto">{plain(document.excerpt)}</span>
              </Button>
            </li>
          );
        })}
      </ol>
      {open && <OriginalDialog passage={open} onClose={() => setOpen(null)} />}
    </section>
  );
}

function ReportGap({ settings }: { settings: Settings }) {
  const { client } = useApp();
  const text = useMessages("ask");
  const announce = useAnnounce();
  const [isReported, setReported] = useState(false);
  const { run, isRunning, error } = useAction();
  const { question, ...asked } = toAsk(settings);
  const report = () =>
    run(async () => {
      await client.post("/api/gaps", { question, settings: asked });
      setReported(true);
      announce(text.reportedThanks);
    });
  return (
    <>
      <Button aria-disabled={isReported || isRunning} onClick={() => !isReported && !isRunning && report()}>
        <Icon name={isReported ? "check" : "gap"} size={16} /> {isReported ? text.reported : text.reportGap}
      </Button>
      {isReported && <span className="small">{text.reportedThanks}</span>}
      {error && (
        <p className="box error" role="alert">
          {text.reportFailed(error.message)}
        </p>
      )}
    </>
  );
}
