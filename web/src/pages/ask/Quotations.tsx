/** An answer that consists of quotations: under the name of each document, with its earlier versions folded. */

import type { AskResponse, Source } from "../../api/types";
import { useMessages } from "../../messages";
import { Icon } from "../../parts/Icon";
import { documentName, place, plain } from "../../parts/names";
import { PagePicture } from "../../parts/PagePicture";
import { Badge, Button } from "../../parts/shapes";
import { Exception } from "./Answer";
import { edition, type Group, otherFigure, type Quotations } from "./quotations";

interface Props {
  response: AskResponse;
  quotations: Quotations;
  onOpen: (source: Source) => void;
}

export function QuotedAnswer({ response, quotations: { groups, others }, onOpen }: Props) {
  return (
    <div className="answer">
      {groups.map((group) => (
        <Document key={group.source.number} group={group} response={response} onOpen={onOpen} />
      ))}
      {/* Of closest passages, the notice above says it. */}
      {(response.closest_passages ? [] : others).map((sentence) => (
        <p key={sentence.start} dir="auto">
          {plain(sentence.text)} <Exception sentence={sentence} />
        </p>
      ))}
    </div>
  );
}

interface DocumentProps extends Omit<Props, "quotations"> {
  group: Group;
}

function Document({ group, response, onOpen }: DocumentProps) {
  const text = useMessages("ask");
  const [first] = group.older;
  const differs = group.older
    .map((older) => otherFigure(response, group, older))
    .find((each) => each !== null);
  const pictured = group.quoted.find(({ source }) => source.picture)?.source;
  return (
    <section className="quoted-document">
      <Name source={group.source} onOpen={onOpen} />
      {group.quoted.map(({ text: words, source }, index) => (
        <blockquote key={index} dir="auto">
          “{plain(words)}
          <span className="quotation-end">
            ”
            <Button
              className="marker"
              aria-label={text.openSource(source.number)}
              title={[place(source), text.openMarked].filter(Boolean).join(" · ")}
              onClick={() => onOpen(source)}
            >
              {source.number}
            </Button>
          </span>
        </blockquote>
      ))}
      {pictured && (
        <div className="card evidence">
          <PagePicture link={pictured.picture} uri={pictured.source} onOpen={() => onOpen(pictured)} />
          <div className="evidence-text">
            <strong>
              <bdi>{documentName(pictured.source)}</bdi>
            </strong>
            <span className="small" dir="auto">
              {place(pictured)}
            </span>
            <Button kind="quiet" onClick={() => onOpen(pictured)}>
              {text.openMarked}
            </Button>
          </div>
        </div>
      )}
      {first && (
        <details className="older">
          <summary className="small">
            {differs
              ? text.otherwise(group.older.length, plain(differs.figure), differs.version)
              : text.olderVersions(group.older.length)}
          </summary>
          {group.older.map((older) => (
            <Document key={older.source.number} group={older} response={response} onOpen={onOpen} />
          ))}
        </details>
      )}
    </section>
  );
}

function Name({ source, onOpen }: { source: Source; onOpen: (source: Source) => void }) {
  const text = useMessages("ask");
  const { isCurrent, version } = edition(source);
  return (
    <h3 className="document-name">
      <Button kind="link" title={text.openOriginal} onClick={() => onOpen(source)}>
        <Icon name="file" size={15} /> <bdi>{documentName(source.source)}</bdi>
      </Button>
      {isCurrent && <Badge kind="good">{text.current}</Badge>}
      {version && <Badge>{plain(version)}</Badge>}
    </h3>
  );
}
