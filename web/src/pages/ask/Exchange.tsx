/** A question with its answer, the evidence for it, and what people can do with it. */

import { useEffect, useRef, useState } from "react";
import type { AskResponse, Source } from "../../api/types";
import { useApp } from "../../context";
import { isKnown } from "../../format";
import { useMessages } from "../../messages";
import { CopyAs } from "../../parts/CopyAs";
import { CopyButton } from "../../parts/CopyButton";
import { Icon } from "../../parts/Icon";
import { JudgeThisAnswer } from "../../parts/JudgeAnswer";
import { Menu } from "../../parts/Menu";
import { withSources } from "../../parts/markdown";
import { documentName, plain } from "../../parts/names";
import { OriginalDialog } from "../../parts/Original";
import { ShareDialog } from "../../parts/ShareDialog";
import { Button, IconButton } from "../../parts/shapes";
import { Notes, Notice } from "../../parts/states";
import { address } from "../../route";
import { type Settings, toParams } from "../../settings";
import { AnswerText } from "./AnswerText";
import type { Asking, Turn } from "./conversation";
import { Missing, Nothing } from "./Nothing";
import { isRunning, Progress } from "./Progress";
import { quotations } from "./quotations";
import { Sources } from "./Sources";
import { Verdict } from "./Verdict";

interface Props {
  asking: Asking;
  settings: Settings;
  /** Whether it is the last of the page, which is scrolled to the top. */
  isLast: boolean;
  /** Of a kept turn: why it has no answer, and what has changed since. */
  kept?: Pick<Turn, "withheld" | "changed"> | undefined;
  onRetry: () => void;
  onEdit: () => void;
}

export function Exchange({ asking, settings, isLast, kept, onRetry, onEdit }: Props) {
  const text = useMessages("ask");
  const { isSignedIn } = useApp();
  const [lit, setLit] = useState<{ sentence?: number; source?: number }>({});
  const [open, setOpen] = useState<Source | null>(null);
  const section = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: when it appears
  useEffect(() => {
    if (isLast) section.current?.scrollIntoView({ block: "start" });
  }, []);
  const { response, found } = asking;
  const sources = response?.sources ?? found?.sources ?? [];
  const sentences = response?.sentences ?? asking.cited;
  const quoted = response && quotations(response);
  const litSources =
    lit.sentence === undefined
      ? lit.source === undefined
        ? []
        : [lit.source]
      : (sentences[lit.sentence]?.citations ?? []);
  const litSentence =
    lit.sentence ??
    (lit.source === undefined
      ? null
      : sentences.findIndex((each) => each.citations.includes(lit.source as number)));
  const isAnswered = response?.answered ?? true;
  // A quoted answer shows the passages that it quotes itself.
  const shownAbove = quoted?.groups
    .flatMap((group) => [group, ...group.older])
    .flatMap((group) => group.quoted.map(({ source }) => source.number));
  const listed = sources.filter((source) => !shownAbove?.includes(source.number));
  return (
    <section
      ref={section}
      className="exchange"
      aria-label={plain(asking.question)}
      aria-busy={isRunning(asking)}
    >
      <header>
        <h2 dir="auto">{plain(asking.question)}</h2>
        <IconButton icon="edit" label={text.edit} onClick={onEdit} />
      </header>
      {response?.missing ? (
        <Missing missing={response.missing} />
      ) : (
        response &&
        !isAnswered &&
        response.answerer.provider !== "none" && (
          <Notice kind="warning">{response.closest_passages ? text.mayNotAnswer : text.noAnswer}</Notice>
        )
      )}
      {response?.missing && response.closest_passages && <h3 className="small">{text.closestPassages}</h3>}
      <AnswerText
        asking={asking}
        lit={litSentence}
        onLight={(sentence) => setLit(sentence === null ? {} : { sentence })}
        onOpen={setOpen}
      />
      {kept?.withheld ? (
        <Notice>{kept.withheld === "deleted" ? text.withheldDeleted : text.withheldRights}</Notice>
      ) : (
        <Progress asking={asking} onRetry={onRetry} />
      )}
      {kept?.changed && kept.changed.length > 0 && (
        <Notice kind="warning">{text.changedSince([...new Set(kept.changed)].map(documentName))}</Notice>
      )}
      {response && (isAnswered || isKnown(response.confidence)) && <Verdict response={response} />}
      <Notes notes={response?.notes} />
      {found && !found.complete && <Notice kind="warning">{text.incomplete}</Notice>}
      {response && !isAnswered && <Nothing response={response} settings={settings} />}
      {response && (
        <JudgeThisAnswer
          key={`${response.question} ${response.answer}`}
          question={response.searched_question ?? response.question}
        >
          <CopyButton icon="copy" label={text.copy} text={() => withSources(response)} />
          <Share response={response} settings={settings} />
          {sources.length > 0 && (
            <a className="button quiet" href={address("search", toParams(settings))}>
              <Icon name="help" size={16} /> {text.whySources}
            </a>
          )}
          <CopyAs kind="ask" settings={settings} />
        </JudgeThisAnswer>
      )}
      {isSignedIn &&
        response?.conversation &&
        !response.conversation.saved &&
        response.conversation.reason && (
          <p className="small">{text.notSaved(response.conversation.reason)}</p>
        )}
      {found?.searched_question && (
        <p className="small">
          {text.searchedFor} <bdi>{plain(found.searched_question)}</bdi>
        </p>
      )}
      {response && isAnswered && listed.length > 0 && (
        <div className="exchange-sources">
          <h3 className="visually-hidden">{text.sources}</h3>
          <Sources
            sources={listed}
            isFolded={quoted !== null}
            lit={litSources}
            onLight={(source) => setLit(source === null ? {} : { source })}
            onOpen={setOpen}
          />
        </div>
      )}
      {open && <OriginalDialog passage={open} onClose={() => setOpen(null)} />}
    </section>
  );
}

function Share({ response, settings }: { response: AskResponse; settings: Settings }) {
  const text = useMessages("ask");
  const [isOpen, setOpen] = useState(false);
  const { conversation } = response;
  const url = `${location.href.split("#")[0]}${address("ask", toParams(settings))}`;
  return (
    <>
      <Menu
        kind="quiet"
        className="share-menu"
        button={
          <>
            <Icon name="share" size={16} /> {text.share}
          </>
        }
      >
        {(close) => (
          <>
            <CopyButton icon="link" label={text.shareQuestion} text={() => url} />
            <p className="small">{text.shareHint}</p>
            {conversation?.saved && (
              <Button
                kind="quiet"
                onClick={() => {
                  close();
                  setOpen(true);
                }}
              >
                <Icon name="people" size={16} /> {text.shareConversation}
              </Button>
            )}
          </>
        )}
      </Menu>
      {isOpen && conversation && (
        <ShareDialog conversation={{ id: conversation.id, shared: false }} onClose={() => setOpen(false)} />
      )}
    </>
  );
}
