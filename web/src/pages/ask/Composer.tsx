/** Where people ask: the question, and below it what is searched, as far as it is not the default. */

import type { Ref } from "react";
import type { InferredFilter } from "../../api/types";
import { useMessages } from "../../messages";
import { QuestionBox } from "../../parts/QuestionBox";
import { SettingsRow } from "../../parts/SettingsRow";
import { Button, Form } from "../../parts/shapes";
import type { Settings } from "../../settings";

interface Props {
  text: string;
  onText: (text: string) => void;
  settings: Settings;
  onSettings: (settings: Settings) => void;
  /** Whether a question was asked with other settings than these. */
  isChanged: boolean;
  isRunning: boolean;
  isFollowUp: boolean;
  inferred: InferredFilter | null;
  onWithoutInference: () => void;
  onSubmit: () => void;
  onStop: () => void;
  box: Ref<HTMLTextAreaElement>;
}

export function Composer({ text, onText, settings, onSettings, box, ...props }: Props) {
  const messages = useMessages("ask");
  const { isChanged, isRunning, inferred } = props;
  const canAsk = text.trim() !== "" || isChanged;
  return (
    <Form className="composer" onSubmit={props.onSubmit}>
      <QuestionBox
        ref={box}
        rows={1}
        placeholder={props.isFollowUp ? messages.followUp : messages.placeholder}
        value={text}
        onChange={onText}
      />
      <div className="composer-row">
        <SettingsRow
          settings={settings}
          onChange={onSettings}
          kind="ask"
          inferred={inferred}
          onWithoutInference={props.onWithoutInference}
        />
        {isRunning ? (
          <Button onClick={props.onStop}>{messages.stop}</Button>
        ) : (
          <Button type="submit" kind="primary" aria-disabled={!canAsk}>
            {text.trim() || !isChanged ? messages.ask : messages.askAgain}
          </Button>
        )}
      </div>
      {isChanged && !text.trim() && !isRunning && <p className="small">{messages.changed}</p>}
    </Form>
  );
}
