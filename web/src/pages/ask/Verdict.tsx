/** One line about the whole answer: what was verified, and how sure it is. */

import type { AskResponse } from "../../api/types";
import { isKnown, milliseconds, percent } from "../../format";
import { useMessages } from "../../messages";
import { Icon } from "../../parts/Icon";
import { Menu } from "../../parts/Menu";
import { Bars } from "../../parts/shapes";
import { check, level } from "./quotations";

export function Verdict({ response }: { response: AskResponse }) {
  const text = useMessages("ask");
  const { confidence } = response;
  const checked = response.answered ? check(response) : null;
  const isWhole = checked !== null && checked.supported === checked.all;
  return (
    <div className="verdict-line">
      {checked && (
        <span className={isWhole ? "verdict-good" : "verdict-warn"}>
          <Icon name={isWhole ? "check" : "warning"} size={16} />
          <span>
            <strong>
              {checked.kind === "quoted"
                ? text.wordForWord(checked.all)
                : isWhole
                  ? text.allCited(checked.all)
                  : text.someSupported(checked.supported, checked.all)}
            </strong>
            {checked.documents > 0 && <>, {text.fromDocuments(checked.documents)}</>}
          </span>
        </span>
      )}
      <Menu
        kind="quiet"
        className="how"
        label={isKnown(confidence) ? `${text.confidence[level(confidence)]}. ${text.howMade}` : text.howMade}
        button={
          isKnown(confidence) ? (
            <Bars level={level(confidence)}>{text.confidence[level(confidence)]}</Bars>
          ) : (
            <Icon name="info" size={16} />
          )
        }
      >
        <div className="facts" role="note">
          {isKnown(confidence) && <p>{text.confidenceWhy(percent(confidence))}</p>}
          <p>
            {response.answerer.provider === "none"
              ? text.noModel
              : response.answerer.quotes
                ? text.withoutModel
                : text.writtenBy(response.answerer.model ?? response.answerer.provider)}
          </p>
          {response.cut_off && <p>{text.cutOff}</p>}
          {response.removed_citations > 0 && <p>{text.removedCitations(response.removed_citations)}</p>}
          <p>{text.took(milliseconds(response.timings.total_ms))}</p>
        </div>
      </Menu>
    </div>
  );
}
